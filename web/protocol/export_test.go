package protocol

import "reflect"

// Types returns the types of a method's arguments and result.
func Types(name string) (in, out reflect.Type) { return table[name].in, table[name].out }
