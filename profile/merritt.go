package profile

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
)

// Merritt is what a profile of Merritt's becomes.
type Merritt struct {
	Mnemonic string // the ProfileID without _content
	Profile  registry.Profile
	Fates    []Fate // of every property, in the order of the file
	// Login is what the callback's address had in it, nil for nothing. It stands in no other field.
	Login *Login

	places map[string]Place
}

// Login is a name and a password that a callback's receiver asks for. Text that is made of it does
// not tell the password.
type Login struct {
	Origin, User string
	password     string
}

// Password is to be sealed and nothing else.
func (l *Login) Password() string { return l.password }

// Fate is what became of properties.
type Fate struct {
	Properties []string `json:"properties"`
	Line       int      `json:"line"` // of the first
	// Taken: it means here what it meant there. Changed: something like it was set. LeftOut:
	// nothing follows from it here.
	Kind FateKind `json:"fate"`
	Text string   `json:"text"` // what was set, or why nothing was
}

// FateKind is how much of a property was taken.
type FateKind string

// The kinds of fates.
const (
	Taken   FateKind = "taken"
	Changed FateKind = "changed"
	LeftOut FateKind = "left out"
)

// Place returns the line of the property that a part of the profile was made of, named as in
// [Document.Place].
func (m *Merritt) Place(location string) Place { return nearestPlace(m.places, location) }

// ParseMerritt reads a profile of a collection of Merritt's. storages are those here that take the
// place of a storage node there, by its number. The error is Faults: what cannot be read, what is
// no collection's profile, and what would mean something else here.
func ParseMerritt(text []byte, storages map[string][]string) (*Merritt, error) {
	list, faults := properties(text)
	if len(faults) > 0 {
		return nil, faults
	}
	r := &merrittReader{Merritt: &Merritt{places: map[string]Place{}}, storages: storages}
	r.kind(list)
	ours := len(r.faults) == 0
	for _, p := range list {
		r.property(p)
	}
	if ours && r.Profile.Owner == "" {
		r.fault(property{}, "it has no Owner, which every collection has")
	}
	if ours && len(r.Profile.Collections) == 0 {
		r.fault(property{}, "it has no Collection.1, which every collection has")
	}
	r.mail()
	r.names()
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
		return nil, r.faults
	}
	slices.SortStableFunc(r.Fates, func(a, b Fate) int { return cmp.Compare(a.Line, b.Line) })
	return r.Merritt, nil
}

type merrittReader struct {
	*Merritt
	storages map[string][]string
	faults   Faults

	namespace, minter, suppression property // "" where they are not given
}

func (r *merrittReader) fault(p property, format string, args ...any) {
	r.faults = append(r.faults, Fault{Place{Line: max(1, p.line)}, fmt.Sprintf(format, args...)})
}

func (r *merrittReader) fate(p property, kind FateKind, format string, args ...any) {
	r.Fates = append(r.Fates, Fate{[]string{p.name}, p.line, kind, fmt.Sprintf(format, args...)})
}

// folded is fate for properties that share theirs with those of the lines before.
func (r *merrittReader) folded(p property, kind FateKind, text string) {
	if n := len(r.Fates); n > 0 && r.Fates[n-1].Kind == kind && r.Fates[n-1].Text == text {
		r.Fates[n-1].Properties = append(r.Fates[n-1].Properties, p.name)
		return
	}
	r.fate(p, kind, "%s", text)
}

// set notes which line a part of the profile is of.
func (r *merrittReader) set(p property, path string) { r.places[path] = Place{Line: p.line} }

// kind refuses what is no collection's profile: those of owners, of service level agreements and of
// services.
func (r *merrittReader) kind(list []property) {
	const wanted = "only profiles of collections are imported, whose ProfileID ends in _content"
	is := map[string]property{}
	for _, p := range list {
		is[p.name] = p
	}
	id := is["ProfileID"]
	name, ok := strings.CutSuffix(id.value, "_content")
	switch {
	case id.value == "":
		r.fault(id, "it has no ProfileID; %s", wanted)
	case !ok || name == "":
		r.fault(id, "ProfileID %s is no collection's; %s", id.value, wanted)
	}
	r.Mnemonic = name
	for _, one := range []struct{ name, means, ours string }{
		{"Role", "", "MRT-content"},
		{"Role", "of a collection as an object of its own", "MRT-class"},
		{"Aggregate", "", "MRT-collection"},
		{"Aggregate", "of an owner", "MRT-owner"},
		{"Aggregate", "of a service level agreement", "MRT-service-level-agreement"},
		{"Type", "", "MRT-curatorial"},
		{"Type", "of the system's own objects", "MRT-system"},
	} {
		if p := is[one.name]; p.value == one.ours && one.means != "" {
			r.fault(p, "%s %s makes it a profile %s; %s", p.name, p.value, one.means, wanted)
		}
	}
	for name, known := range map[string][]string{
		"Role": {"", "MRT-content", "MRT-class"}, "Aggregate": {"", "MRT-none", "MRT-collection", "MRT-owner", "MRT-service-level-agreement"},
		"Type": {"", "MRT-curatorial", "MRT-system"},
	} {
		if p := is[name]; !slices.Contains(known, p.value) {
			r.fault(p, "%s %s is not known, so neither is what the profile is of; %s", name, p.value, wanted)
		}
	}
}

// reasons say why nothing follows here from properties that nothing follows from.
func reasons() map[string]string {
	return map[string]string{
		"NotificationFormat": "mails are text and HTML here, with their lists as JSON and CSV",
		"NotificationType":   "every report names each object here, failed or not",
		"StorageService":     "storages are known here by their names",
		"EZID_co-owner":      "co-owners are not set here; set them at EZID",
		"Context":            "it was told EZID as mrt.creator, which is not told from here",
		"CreationDate":       "a version of a profile has the time of its import here",
		"ModificationDate":   "a version of a profile has the time of its import here",
		"Type":               "it says that this is a profile of a collection",
		"Role":               "it says that this is a profile of a collection",
		"Aggregate":          "it says that this is a profile of a collection",
	}
}

func (r *merrittReader) property(p property) {
	if p.value == "" {
		r.fate(p, LeftOut, "it is empty")
		return
	}
	f := &r.Profile
	switch base := p.base(); {
	case p.name == "ProfileID":
		r.fate(p, Taken, "the collection is %s", r.Mnemonic)
	case p.name == "ProfileDescription":
		f.Description = p.value
		r.set(p, "description")
		r.fate(p, Taken, "description")
	case p.name == "Owner":
		f.Owner = p.value
		r.set(p, "owner")
		r.fate(p, Taken, "owner")
	case base == "Collection":
		r.set(p, fmt.Sprintf("collections[%d]", len(f.Collections)))
		f.Collections = append(f.Collections, p.value)
		r.fate(p, Taken, "collections")
	case base == "Notification":
		r.set(p, fmt.Sprintf("mail.to[%d]", len(r.to().To)))
		r.to().To = append(r.to().To, p.value)
		r.fate(p, Taken, "mail.to")
	case p.name == "NotificationSuppression":
		r.suppression = p
	case p.name == "Identifier-scheme":
		if !strings.EqualFold(p.value, "ARK") {
			r.fault(p, "Identifier-scheme %s: objects have ARKs here and nothing else", p.value)
			return
		}
		r.fate(p, Taken, "every object has an ARK")
	case p.name == "Identifier-namespace":
		r.namespace = p
	case p.name == "ObjectMinterURL":
		r.minter = p
	case p.name == "CallbackURL":
		r.callback(p)
	case p.name == "Priority":
		n, err := strconv.Atoi(p.value)
		if err != nil {
			r.fault(p, "Priority %s is no whole number", p.value)
			return
		}
		f.Priority = &n
		r.set(p, "priority")
		r.fate(p, Taken, "priority")
	case p.name == "SuppressDublinCoreLocalID":
		suppress, err := strconv.ParseBool(strings.ToLower(p.value))
		if err != nil {
			r.fault(p, "SuppressDublinCoreLocalID %s is neither true nor false", p.value)
			return
		}
		f.SuppressDCLocalIDs = suppress
		r.fate(p, Taken, "suppress_dc_local_ids")
	case p.name == "StorageNode":
		r.storage(p)
	case strings.HasPrefix(p.name, "Handler"):
		r.folded(p, LeftOut, "the stages of a job are the same for all collections here")
	case reasons()[base] != "":
		r.fate(p, LeftOut, "%s", reasons()[base])
	default:
		r.fate(p, LeftOut, "it is not known here")
	}
}

func (r *merrittReader) to() *registry.MailRules {
	if r.Profile.Mail == nil {
		r.Profile.Mail = &registry.MailRules{}
	}
	return r.Profile.Mail
}

// mail says what is told of. Merritt tells of every batch that is queued and reported, unless that
// is suppressed.
func (r *merrittReader) mail() {
	rules, p := r.to(), r.suppression
	switch strings.ToLower(p.value) {
	case "":
		rules.Queued = true
	case "partial":
		r.fate(p, Taken, "no mails of batches that are queued")
	case "full":
		rules.FailuresOnly = true
		r.fate(p, Changed, "mail.failures_only: batches that went well are not told of; failures are never hidden here")
	default:
		r.fault(p, "NotificationSuppression %s is not known; there are partial and full", p.value)
	}
	if len(rules.To) == 0 && !rules.Queued && !rules.FailuresOnly {
		r.Profile.Mail = nil
	}
}

// callback takes a receiver's address without what it asks for. What Merritt adds to it is added,
// and as there a receiver that cannot be told fails no job.
func (r *merrittReader) callback(p property) {
	u, err := url.Parse(p.value)
	if err != nil || u.Hostname() == "" {
		r.fault(p, "CallbackURL is no address; it is https://HOST/PATH") // and may have a password in it
		return
	}
	said := "callback.url, with /mc/{job} as there; what it is told is JSON with the same fields"
	if u.User != nil {
		password, _ := u.User.Password()
		r.Login = &Login{Origin: u.Scheme + "://" + u.Host, User: u.User.Username(), password: password}
		u.User = nil
		said += fmt.Sprintf(". The name and password in it are kept in no profile: holdfast collection credential set %s %s --basic %s",
			r.Mnemonic, r.Login.Origin, r.Login.User)
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.String(), "?#{}") {
		r.fault(p, "CallbackURL has a query, a fragment or a brace, which a callback's address has not here")
		return
	}
	address := strings.TrimSuffix(u.String(), "/") + "/mc/{job}"
	r.Profile.Callback = &registry.Callback{URL: address, GoesOn: true}
	r.set(p, "callback")
	r.fate(p, Changed, "%s", said+". A receiver that cannot be told does not fail the job (callback.goes_on)")
}

// storage takes the storages that were named for a node.
func (r *merrittReader) storage(p property) {
	names, ok := r.storages[p.value]
	if !ok {
		r.fate(p, LeftOut, "versions go to the storage that has no name; name others by --storage %s=NAME[,NAME]", p.value)
		return
	}
	r.Profile.Storages = names
	r.set(p, "storages")
	r.fate(p, Changed, "storages: %s", strings.Join(names, ", "))
}

// mask is what names look like behind their shoulder: as those do that are minted here.
const mask = "{.reeeeeeeek}"

// names says where objects' names come from: from the shoulder that EZID was asked for, else from
// the namespace.
func (r *merrittReader) names() {
	shoulder := func(text string) (string, bool) {
		text = strings.TrimPrefix(strings.TrimPrefix(text, "ark:"), "/")
		_, err := noid.ParseTemplate(text + mask)
		naan, after, ok := strings.Cut(text, "/")
		return text + mask, ok && naan != "" && after != "" && err == nil
	}
	p, f := r.minter, &r.Profile
	_, at, found := strings.Cut(p.value, "/shoulder/")
	template, ok := shoulder(at)
	switch {
	case p.value == "":
	case found && ok:
		f.Minting, f.NOIDTemplate = registry.MintEZID, template
		r.set(p, "minting")
		r.set(p, "noid_template")
		r.fate(p, Changed, "minting: ezid, noid_template: %s. Names are drawn here and told EZID; the workers need HOLDFAST_EZID_URL and its account", template)
	default:
		r.fault(p, "ObjectMinterURL names no shoulder of EZID's (https://HOST/shoulder/ark:/NAAN/SHOULDER); take it out to have names minted here")
	}
	p = r.namespace
	template, ok = shoulder(p.value)
	switch {
	case p.value == "":
	case f.NOIDTemplate != "" && (!ok || template == f.NOIDTemplate):
		r.fate(p, LeftOut, "the shoulder of ObjectMinterURL says it")
	case f.NOIDTemplate != "":
		r.fault(p, "Identifier-namespace %s is another one than the shoulder of ObjectMinterURL; leave in the one that is meant", p.value)
	case ok:
		f.NOIDTemplate = template
		r.set(p, "noid_template")
		r.fate(p, Changed, "noid_template: %s. Names are drawn here", template)
	default:
		r.fate(p, LeftOut, "no template can be made of it; names are drawn from the service's own, HOLDFAST_NAAN and HOLDFAST_NOID_TEMPLATE")
	}
}
