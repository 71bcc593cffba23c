"""The serial link: bytes of a UART to messages, sent again until they are acknowledged."""
