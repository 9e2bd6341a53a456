"""A client in a Qt program, on its event loop: `python qt_client.py URL TOOL JSON`."""

import sys
from time import monotonic as now

from one_call import OneCall
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal
from PySide6.QtNetwork import QSslSocket

from sansmcp import Close, Connect, HttpConnector, Write


class Driver(QObject):
    told = Signal(object)
    """Every event."""
    finished = Signal()

    def __init__(self, client):
        super().__init__()
        self.connector = HttpConnector(client, now=now())
        self.sockets = {}
        self.timer = QTimer(self, singleShot=True)
        self.timer.timeout.connect(lambda: self.input(self.connector.handle_timeout))

    def input(self, method, *arguments):
        """Call an input, or a verb of the engine, and do what comes of it."""
        method(*arguments, now=now())
        while True:
            while (op := self.connector.next_op()) is not None:
                match op:
                    case Connect():
                        self.connect_to(op)
                    case Write():
                        self.sockets[op.conn].write(op.data)
                    case Close():
                        self.sockets.pop(op.conn).disconnectFromHost()
            event = self.connector.next_event()
            if event is None:
                break
            self.told.emit(event)
        when = self.connector.next_timeout()
        if when is not None:
            self.timer.start(max(0, round((when - now()) * 1000)))
        if self.connector.finished:
            self.finished.emit()

    def connect_to(self, op):
        conn, connector = op.conn, self.connector
        sock = self.sockets[conn] = QSslSocket(self)
        ready = sock.connected if op.tls is None else sock.encrypted
        ready.connect(lambda: self.input(connector.opened, conn))
        sock.readyRead.connect(lambda: self.input(connector.receive_data, conn, sock.readAll().data()))
        sock.errorOccurred.connect(lambda: self.input(connector.failed, conn, sock.errorString()))
        sock.disconnected.connect(sock.deleteLater)
        if op.tls is None:
            sock.connectToHost(op.host, op.port)
        else:
            sock.connectToHostEncrypted(op.host, op.port, op.tls)


if __name__ == "__main__":
    application, call = QCoreApplication([]), OneCall(*sys.argv[1:])
    driver = Driver(call.client)
    driver.told.connect(call.on_event)
    driver.finished.connect(application.quit)
    QTimer.singleShot(0, lambda: driver.input(driver.connector.start))
    application.exec()
