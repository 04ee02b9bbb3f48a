package ocfl

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/faults"
)

// versions reads the block of versions, which may come in any order.
func (d *decoder) versions() error {
	type named struct {
		name    string
		version Version
	}
	var list []named
	seen := make(map[string]bool)
	err := d.object(func(name string) error {
		if seen[name] {
			d.fault("E033", "version %q occurs twice", name)
		}
		seen[name] = true
		if err := d.hold(len(name) + perVersion); err != nil {
			return err
		}
		v := Version{}
		if err := d.version(name, &v); err != nil {
			return err
		}
		list = append(list, named{name, v})
		return nil
	}, func() {
		d.fault("E044", "versions is not an object")
		d.fault("E045", "versions is not an object")
	})
	slices.SortStableFunc(list, func(a, b named) int {
		x, _, okX := parseVersionName(a.name)
		y, _, okY := parseVersionName(b.name)
		if okX != okY {
			// Invalid names come last, where they are cut off.
			if okX {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.name, b.name))
	})
	for _, v := range list {
		d.out.names = append(d.out.names, v.name)
		d.out.inv.Versions = append(d.out.inv.Versions, v.version)
	}
	return err
}

// version reads one version block.
func (d *decoder) version(name string, v *Version) error {
	seen := make(map[string]bool)
	isObject := true
	err := d.object(func(key string) error {
		if seen[key] {
			d.fault("E033", "%s: key %q occurs twice", name, key)
		}
		if len(seen) < faults.Most { // a version has four
			seen[key] = true
		}
		switch key {
		case "created":
			return d.created(name, v)
		case "message":
			v.hasMessage = true
			return d.stringInto(&v.Message, "E094", name+": message")
		case "user":
			return d.user(name, v)
		case "state":
			return d.state(name, v)
		}
		d.fault("E102", "%s: unknown key %q", name, key)
		return d.skip()
	}, func() {
		isObject = false
		d.fault("E047", "%s is not an object", name)
	})
	if err != nil || !isObject {
		return err
	}
	for _, key := range []string{"created", "state"} {
		if !seen[key] {
			d.fault("E048", "%s has no %s", name, key)
		}
	}
	for _, key := range []string{"message", "user"} {
		if !seen[key] {
			d.fault("W007", "%s has no %s", name, key)
		}
	}
	return nil
}

// created reads the time of a version.
func (d *decoder) created(name string, v *Version) error {
	if err := d.stringInto(&v.createdText, "E049", name+": created"); err != nil || v.createdText == "" {
		return err
	}
	var err error
	// RFC 3339 allows lower case, which the time package does not.
	if v.Created, err = time.Parse(time.RFC3339, strings.ToUpper(v.createdText)); err != nil {
		d.fault("E049", "%s: created is %q, no date and time of RFC 3339 with seconds and zone", name, v.createdText)
	}
	return nil
}

// user reads the user of a version.
func (d *decoder) user(name string, v *Version) error {
	user := &User{}
	hasAddress, isObject := false, true
	err := d.object(func(key string) error {
		switch key {
		case "name":
			return d.stringInto(&user.Name, "E054", name+": user name")
		case "address":
			hasAddress = true
			return d.stringInto(&user.Address, "E054", name+": user address")
		}
		d.fault("E102", "%s: unknown key %q in user", name, key)
		return d.skip()
	}, func() {
		isObject = false
		d.fault("E054", "%s: user is not an object", name)
	})
	if err != nil || !isObject {
		return err
	}
	v.User = user
	if user.Name == "" {
		d.fault("E054", "%s: user has no name", name)
	}
	switch {
	case !hasAddress:
		d.fault("W008", "%s: user has no address", name)
	case !isURI(user.Address):
		d.fault("W009", "%s: user address %q is not a URI", name, user.Address)
	}
	return nil
}

// state reads the files of a version.
func (d *decoder) state(name string, v *Version) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		d.fault("E050", "%s: state is not an object", name)
		return d.rest(token)
	}
	block := codes{block: name + ": state", notArray: "E051", repeated: "E050"}
	err = d.digests(block, d.known.logicalPath, func(digest string, paths []string) {
		digest = d.known.digest(digest)
		for _, path := range paths {
			v.State = append(v.State, StateFile{Path: path, Digest: digest})
		}
	})
	v.State = slices.Clip(v.State)
	slices.SortStableFunc(v.State, func(a, b StateFile) int { return cmp.Compare(a.Path, b.Path) })
	d.known.last = v.State
	return err
}
