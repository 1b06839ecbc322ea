"""A server written with the protocol's own library for Python."""

from mcp.server import MCPServer

server = MCPServer("python-server", instructions="Adds numbers.")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.resource("notes://today")
def today() -> str:
    """Notes of today."""
    return "nothing happened"


@server.prompt()
def review(code: str) -> str:
    """Asks for a review."""
    return f"Please review: {code}"


server.run()
