"""Ports for the servers of tests, which no other process may be given while they are wanted."""

import random
import socket

# Below what systems give to outgoing connections and to servers that ask for any port, so that
# none of those can come between the choice of a port and the server that is to listen there.
PORTS = range(20_000, 32_000)
_held: list[socket.socket] = []


def free_port(among: range = PORTS) -> int:
    """A port of the loopback that nobody else is given for as long as this process lives.

    Datagrams have ports of their own: who holds that one has this one, whichever run of the tests
    it belongs to, until the system lets it go with the process. Raises OSError where all are held.
    """
    for port in random.SystemRandom().sample(among, len(among)):
        if _hold(port):
            return port
    raise OSError(f"every port from {among[0]} to {among[-1]} is taken")


def _hold(port: int) -> bool:
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        mark.close()
        return False
    _held.append(mark)
    return True
