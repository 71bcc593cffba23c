"""What is placed on ECP5 before nextpnr runs, and where its blocks are."""
