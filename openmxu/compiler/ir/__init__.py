"""The intermediate representation: a network of operations in integers, each with its definition in numpy."""
