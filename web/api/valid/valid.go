// Package valid checks values in requests. Each function returns the faults of a value at a
// location of the request, with texts for people; nil if it is valid. It does not check whether a
// named thing exists.
package valid

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/web/wire"
)

// Limits on text, in bytes.
const (
	MaxText = 2000 // of a title, a reason and the like
	MaxName = 255  // of a file's name: the limit of file systems
)

// Fault returns the fault that a statement is about.
func Fault(location string, s registry.Statement) wire.Fault {
	return wire.Fault{Location: location, Message: wording.Statement(wording.English{}, s, ""), Statement: &s}
}

// Found is Fault with the value that was found.
func Found(location, value string, s registry.Statement) wire.Fault {
	f := Fault(location, s)
	f.Found = value
	return f
}

// Text returns a fault unless text is at most limit bytes of UTF-8 without control characters. A
// control character has no place in a title, and terminals would execute it.
func Text(location, text string, limit int) []wire.Fault {
	switch bad := strings.IndexFunc(text, unicode.IsControl); {
	case len(text) > limit:
		return []wire.Fault{Fault(location, registry.Statement{Says: registry.SaysTooLong, N: int64(len(text)), Of: int64(limit)})}
	case !utf8.ValidString(text):
		return []wire.Fault{{Location: location, Message: "not UTF-8"}}
	case bad >= 0:
		return []wire.Fault{Fault(location, registry.Statement{Says: registry.SaysControl, N: int64(bad), Name: fmt.Sprintf("%q", text[bad])})}
	}
	return nil
}

// Terms returns the faults of terms.
func Terms(location string, t registry.Terms) (faults []wire.Fault) {
	texts := map[string]string{"preservation_level": t.PreservationLevel, "embargo_reason": t.EmbargoReason}
	if t.Rights != nil {
		texts["rights.statement"], texts["rights.uri"] = t.Rights.Statement, t.Rights.URI
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		faults = append(faults, Text(location+"."+field, texts[field], MaxText)...)
	}
	for _, wrong := range t.Faults() {
		faults = append(faults, wire.Fault{Location: location + "." + wrong.Field, Message: wrong.Error()})
	}
	return faults
}

// Name returns a fault unless name can be the name of a file in an object.
func Name(location, name string) []wire.Fault {
	if faults := Text(location, name, MaxName); faults != nil {
		return faults
	}
	switch {
	case name == "." || name == "..", strings.ContainsRune(name, '/'):
		return []wire.Fault{{Location: location, Message: "the name of a file has no folders; give only its last part", Found: name}}
	}
	for part := range strings.SplitSeq(name, `\`) {
		if part == ".." {
			return []wire.Fault{{Location: location, Message: `contains .. beside a backslash, which leads out of a folder on Windows; rename the file`, Found: name}}
		}
	}
	return nil
}

// Priority returns a fault unless submissions and profiles may have the priority.
func Priority(location string, priority *int) []wire.Fault {
	return refused(location, registry.CheckPriority(priority))
}

// Express returns a fault unless operators may set the priority.
func Express(location string, priority *int) []wire.Fault {
	return refused(location, registry.CheckExpress(priority))
}

func refused(location string, err error) []wire.Fault {
	if err == nil {
		return nil
	}
	return []wire.Fault{{Location: location, Message: err.Error()}}
}

// OneOf returns a fault unless value is one of known or empty.
func OneOf[T ~string](location string, value T, known []T) []wire.Fault {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return notOneOf(location, string(value), fmt.Sprint(known))
}

func notOneOf(location, value, known string) []wire.Fault {
	return []wire.Fault{Found(location, value, registry.Statement{Says: registry.SaysNotOneOf, Name: value, Text: known})}
}

// Stage returns a fault unless value is empty, a stage of a route, or the stage of a function.
func Stage(location string, value registry.Stage) []wire.Fault {
	if registry.IsStage(value) {
		return nil
	}
	return OneOf(location, value, Stages())
}

// Stages returns the stages that a request can name, with placeholders for functions and namespaces.
func Stages() []registry.Stage {
	return append(slices.Clone(registry.Stages()), registry.Run.Of("FUNCTION"), registry.ProcessStep.Of("NAMESPACE"))
}

// Digest returns a digest in canonical form: the algorithm's own name and lower-case hex.
func Digest(location string, d *registry.Digest) (*registry.Digest, []wire.Fault) {
	if d == nil {
		return nil, nil
	}
	name, length, ok := checkm.Algorithm(d.Algorithm)
	if ok {
		_, err := fixity.New(name)
		ok = err == nil
	}
	if !ok {
		return nil, notOneOf(location+".algorithm", d.Algorithm, fmt.Sprint(fixity.Algorithms()))
	}
	value := strings.ToLower(d.Value)
	if _, err := hex.DecodeString(value); err != nil || len(value) != length {
		return nil, []wire.Fault{Found(location+".value", d.Value, registry.Statement{Says: registry.SaysNoDigest, Name: name, N: int64(length)})}
	}
	return &registry.Digest{Algorithm: name, Value: value}, nil
}

// Mails returns a fault for each invalid mail address, or one fault if there are too many
// addresses.
func Mails(location string, addresses []string) (faults []wire.Fault) {
	if most := registry.MostMailAddresses; len(addresses) > most {
		return []wire.Fault{Fault(location, registry.Statement{Says: registry.SaysTooManyMails, N: int64(len(addresses)), Of: int64(most)})}
	}
	for i, a := range addresses {
		if _, err := registry.MailAddress(a); err != nil || len(a) > MaxText || Text("", a, MaxText) != nil {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("%s[%d]", location, i), Message: "not a mail address", Found: a,
			})
		}
	}
	return faults
}

// Query parses a query. It returns the fault at a location of the request.
func Query(location, text string) (registry.Query, []wire.Fault) {
	q, err := query.Parse(text)
	var wrong *registry.QueryError
	if errors.As(err, &wrong) {
		return q, []wire.Fault{QueryFault(location, wrong)}
	}
	return q, nil
}

// QueryFault returns the fault of a query at a location of the request.
func QueryFault(location string, wrong *registry.QueryError) wire.Fault {
	return wire.Fault{
		Location: location, Column: wrong.Position, Message: wrong.Error(), Found: wrong.Word, Expected: strings.Join(wrong.Known, ", "),
	}
}
