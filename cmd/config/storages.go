package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/open"
)

// Storage is one preservation storage.
type Storage struct {
	Name    string
	Address string // as open.URL takes it
}

// Storages returns the preservation storages, the one called [registry.DefaultStorage] first; none
// when the variable is not set. The error names the variable at fault; Load has checked it.
func (c Config) Storages() ([]Storage, error) {
	all, err := parseStorages(c.StorageURL)
	if err == nil {
		return all, nil
	}
	var f *Fault
	if wrong := fault("STORAGE_URL", c.StorageURL, nil); errors.As(wrong, &f) {
		f.Err = err // which repeats no secret
	}
	return all, f
}

// parseStorages reads addresses, each with NAME= before it or without, between spaces or commas.
// Its errors tell names that a storage can have and nothing else, which may be secret.
func parseStorages(text string) (all []Storage, err error) {
	var errs []error
	for _, word := range splitStorages(text) {
		s := Storage{Name: registry.DefaultStorage, Address: word}
		if name, address, ok := strings.Cut(word, "="); ok && !strings.Contains(name, ":") {
			s = Storage{Name: name, Address: address}
		}
		switch {
		case registry.CheckStorageName(s.Name) != nil:
			errs = append(errs, fmt.Errorf("number %d has no name that a storage can have: small letters, digits, - and _, not %s", len(all)+1, registry.DefaultStaging))
			s.Name = ""
		case !isURL(s.Address, "file", "s3"):
			errs = append(errs, fmt.Errorf("number %d has no address of this form", len(all)+1))
		}
		for _, other := range all {
			if other.Name == s.Name && s.Name != "" {
				errs = append(errs, fmt.Errorf("two storages are called %q; give each a name of its own: NAME=ADDRESS", s.Name))
			}
			if open.Overlap(other.Address, s.Address) {
				errs = append(errs, fmt.Errorf("storages %q and %q are the same place, or one lies in the other", other.Name, s.Name))
			}
		}
		if all = append(all, s); s.Name == registry.DefaultStorage {
			all[0], all[len(all)-1] = all[len(all)-1], all[0]
		}
	}
	return all, errors.Join(errs...)
}

// splitStorages cuts the setting at spaces and commas, but for the commas of a layout, before each
// of its parameters: file:///objects?layout=0006,delimiter=/ is one address.
func splitStorages(text string) (words []string) {
	for field := range strings.FieldsSeq(text) {
		begun := false
		for word := range strings.SplitSeq(field, ",") {
			switch {
			case begun && ofLayout(words[len(words)-1], word):
				words[len(words)-1] += "," + word
			case word != "":
				words, begun = append(words, word), true
			}
		}
	}
	return words
}

// ofLayout says whether a word after a comma is a parameter of the layout that an address ends
// with: NAME=VALUE, and no storage.
func ofLayout(address, word string) bool {
	_, query, _ := strings.Cut(address, "?")
	parameters := strings.Split(query, "&")
	return strings.HasPrefix(parameters[len(parameters)-1], "layout=") && strings.Contains(word, "=") && !strings.Contains(word, ":/")
}
