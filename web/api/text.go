package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Limits on text, in bytes.
const (
	maxText = 2000 // of a title, a reason and the like
	maxName = 255  // of a file's name: what file systems take
)

// textFault returns a fault unless text is at most limit bytes of UTF-8 without control characters, which no title has and
// every terminal obeys.
func textFault(location, text string, limit int) []wire.Fault {
	switch bad := strings.IndexFunc(text, unicode.IsControl); {
	case len(text) > limit:
		return []wire.Fault{{Location: location, Message: fmt.Sprintf("%d bytes long; at most %d can be kept", len(text), limit)}}
	case !utf8.ValidString(text):
		return []wire.Fault{{Location: location, Message: "it is not UTF-8"}}
	case bad >= 0:
		return []wire.Fault{{Location: location, Message: fmt.Sprintf("byte %d is a control character (%q)", bad, text[bad])}}
	}
	return nil
}

// nameFault returns a fault unless name can be a file's name: it becomes part of the object.
func nameFault(location, name string) []wire.Fault {
	if faults := textFault(location, name, maxName); faults != nil {
		return faults
	}
	switch {
	case name == "." || name == "..", strings.ContainsRune(name, '/'):
		return []wire.Fault{{Location: location, Message: "a file's name has no folders; give the last part alone", Found: name}}
	}
	for part := range strings.SplitSeq(name, `\`) {
		if part == ".." {
			return []wire.Fault{{Location: location, Message: `it has .. beside a backslash, which leads out of a folder on Windows; rename the file`, Found: name}}
		}
	}
	return nil
}

// priorityFault returns a fault unless a submission or a profile may ask for the priority.
func priorityFault(location string, priority *int) []wire.Fault {
	return refused(location, registry.CheckPriority(priority))
}

// expressFault returns a fault unless an operator may ask for the priority.
func expressFault(location string, priority *int) []wire.Fault {
	return refused(location, registry.CheckExpress(priority))
}

func refused(location string, err error) []wire.Fault {
	if err == nil {
		return nil
	}
	return []wire.Fault{{Location: location, Message: err.Error()}}
}
