# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of bluetoothd that exchanges the messages of an opening without their content: what the link itself costs."""
import time

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

from harness import until

DEVICE, CHARACTERISTIC, PROPERTIES = "org.bluez.Device1", "org.bluez.GattCharacteristic1", "org.freedesktop.DBus.Properties"
# The lengths of the two messages of a credential.
MESSAGES = (75, 165)


class PlainClient:
    def __init__(self, device):
        """`device` is the object path of the reader."""
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        self.bus, self.device = dbus.SystemBus(private=True), device
        self.values, self.is_resolved, self.received, self.error = 0, False, None, None

    def interface(self, path, name):
        return dbus.Interface(self.bus.get_object("org.bluez", path, introspect=False), name)

    def changed(self, interface, values, _, path):
        if interface == DEVICE and path == self.device:
            self.is_resolved = values.get("ServicesResolved", self.is_resolved)
        if interface == CHARACTERISTIC and "Value" in values:
            self.values += 1
            if self.values > len(MESSAGES):
                self.received = time.monotonic()
            else:
                message = dbus.ByteArray(b"\2" + bytes(MESSAGES[self.values - 1]))
                options = dbus.Dictionary({"type": "request"}, signature="sv")
                self.input.WriteValue(message, options, reply_handler=lambda: None, error_handler=self.fail)

    def objects(self):
        return self.interface("/", "org.freedesktop.DBus.ObjectManager").GetManagedObjects()

    def connect(self):
        """Connects, once bluetoothd knows the reader and no other connection is left: badged lets it forget readers, which its
        scan finds again. Returns the time of the begin, or None."""
        device = self.objects().get(self.device, {}).get(DEVICE)
        if device is None or device["Connected"]:
            return None
        begun = time.monotonic()
        try:
            self.interface(self.device, DEVICE).Connect()
        except dbus.DBusException as error:
            if error.get_dbus_name() != "org.freedesktop.DBus.Error.UnknownObject":
                raise
            return None
        return begun

    def find(self, flag):
        return self.interface(next(path for path, interfaces in self.objects().items() if path.startswith(self.device)
                                   and flag in interfaces.get(CHARACTERISTIC, {}).get("Flags", [])), CHARACTERISTIC)

    def listen(self):
        """Listens to the reader until `leave`: bluetoothd switches the notifications on in each connection, also when this one has
        ended."""
        device = self.interface(self.device, DEVICE)
        device.Connect()
        until(lambda: self.interface(self.device, PROPERTIES).Get(DEVICE, "ServicesResolved"))
        self.find("notify").StartNotify()
        device.Disconnect()

    def leave(self):
        self.find("notify").StopNotify()

    def acquire(self):
        """Connects, and acquires the notifications, which no other program receives then. Returns the descriptor that holds them."""
        self.interface(self.device, DEVICE).Connect()
        return self.find("notify").AcquireNotify(dbus.Dictionary(signature="sv"))[0].take()

    def fail(self, error):
        self.error = error

    def wait(self, condition):
        while not condition():
            if self.error:
                raise self.error
            GLib.MainContext.default().iteration(True)

    def converse(self):
        """Connects, exchanges the messages and disconnects. Returns the times of the begin and of the last notification."""
        self.values, self.is_resolved, self.received = 0, False, None
        signals = self.bus.add_signal_receiver(self.changed, "PropertiesChanged", path_keyword="path", bus_name="org.bluez")
        begun = until(self.connect)
        self.wait(lambda: self.is_resolved)
        self.input = self.find("write")
        output = self.find("notify")
        output.StartNotify(reply_handler=lambda: None, error_handler=self.fail)
        self.wait(lambda: self.received)
        signals.remove()
        # bluetoothd switches notifications on again in the next connection for a client that does not do this.
        output.StopNotify()
        self.interface(self.device, DEVICE).Disconnect()
        return begun, self.received
