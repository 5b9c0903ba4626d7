"""What all managed devices have in common (docs/protocols/managed.md).

`fields` and `messages` are the words on the wire, `dialect` what one class of device adds to them, `packets`
how both travel. `session` talks with a device and `ring` follows its events; `control` sends commands,
`capture` reads along, `spec` makes the driver.
"""
