package metadata

import (
	"io"
	"strings"
)

// ERC is an Electronic Resource Citation. Every element may have several values.
type ERC struct {
	Who   []string
	What  []string
	When  []string
	Where []string
}

// ReadERC reads the first ERC of an ANVL text: the elements who, what, when and where after "erc:",
// up to the next "erc:", or the one-line form "erc: who | what | when | where". Case is ignored.
// The line "erc:" may be missing, and there may be blank lines between elements. Other elements and
// empty values are ignored.
//
// Errors: those of ReadANVL, and ErrNoMetadata if none of the four elements exists.
func ReadERC(r io.Reader) (ERC, error) {
	records, err := ReadANVL(r)
	if err != nil {
		return ERC{}, err
	}
	var e ERC
	found, begun := false, false
	for _, record := range records {
		for _, el := range record {
			if strings.EqualFold(el.Label, "erc") {
				if begun {
					return e.orNone(found)
				}
				begun = true
				found = e.addOneLine(el.Value) || found
				continue
			}
			if values := e.element(el.Label); values != nil {
				begun, found = true, true
				if el.Value != "" {
					*values = append(*values, el.Value)
				}
			}
		}
	}
	return e.orNone(found)
}

func (e *ERC) orNone(found bool) (ERC, error) {
	if !found {
		return ERC{}, ErrNoMetadata
	}
	return *e, nil
}

// addOneLine adds the values of the one-line form. It returns false if there are none.
func (e *ERC) addOneLine(value string) bool {
	if value == "" {
		return false
	}
	values := strings.Split(value, "|")
	for i, to := range []*[]string{&e.Who, &e.What, &e.When, &e.Where} {
		if i < len(values) {
			addValue(to, values[i])
		}
	}
	return true
}

func (e *ERC) element(label string) *[]string {
	switch strings.ToLower(label) {
	case "who":
		return &e.Who
	case "what":
		return &e.What
	case "when":
		return &e.When
	case "where":
		return &e.Where
	default:
		return nil
	}
}

func addValue(to *[]string, value string) {
	if value = strings.TrimSpace(value); value != "" {
		*to = append(*to, value)
	}
}

// Identifiers returns the ARKs and the local ids in the values of where. Each value is split at
// ";". Codes for missing values are ignored. Both lists keep their order and have no duplicates.
func (e ERC) Identifiers() (arks, local []string) {
	for _, value := range e.Where {
		a, l := splitIDs(value)
		arks, local = append(arks, a...), append(local, l...)
	}
	return MergeLocalIDs(arks), MergeLocalIDs(local)
}

// WriteERC writes mrt-erc.txt: "erc:", then who, what, when and where with one line per value, or
// "(:unas)" for an element without values. Errors are those of WriteANVL.
func WriteERC(w io.Writer, e ERC) error {
	r := Record{}.Add("erc", "")
	for _, el := range []struct {
		label  string
		values []string
	}{{"who", e.Who}, {"what", e.What}, {"when", e.When}, {"where", e.Where}} {
		begun := len(r)
		for _, v := range el.values {
			if v != "" {
				r = r.Add(el.label, v)
			}
		}
		if len(r) == begun {
			r = r.Add(el.label, string(Unassigned))
		}
	}
	return writeANVL(w, "mrt-erc.txt", Space, r)
}
