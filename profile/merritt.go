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

// Merritt is an imported profile of Merritt's.
type Merritt struct {
	Mnemonic string // the ProfileID without _content
	Profile  registry.Profile
	Fates    []Fate // of all properties, in the order of the file
	// Login is the user and password in the callback's address, or nil. No other field contains
	// them.
	Login *Login

	places map[string]Place
}

// Login is the user and password for a callback's receiver. Formatting it does not show the
// password.
type Login struct {
	Origin, User string
	password     string
}

// Password returns the password. Only seal it.
func (l *Login) Password() string { return l.password }

// Fate says what became of properties in the import.
type Fate struct {
	Properties []string `json:"properties"`
	Line       int      `json:"line"` // of the first
	// Kind is Taken if the meaning is the same, Changed if something similar was set, and LeftOut
	// if nothing was set.
	Kind FateKind `json:"fate"`
	Text string   `json:"text"` // what was set, or why nothing was
}

// FateKind is the kind of a Fate.
type FateKind string

// The kinds.
const (
	Taken   FateKind = "taken"
	Changed FateKind = "changed"
	LeftOut FateKind = "left out"
)

// Place returns the line of the property from which a part of the profile was made; see
// [Document.Place].
func (m *Merritt) Place(location string) Place { return nearestPlace(m.places, location) }

// ParseMerritt imports a profile of one of Merritt's collections. storages maps the numbers of
// Merritt's storage nodes to storages here. The error is Faults: lines that cannot be read,
// profiles of other things than collections, and properties that would change their meaning.
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

	namespace, minter, suppression property // zero if not given
}

func (r *merrittReader) fault(p property, format string, args ...any) {
	r.faults = append(r.faults, Fault{Place{Line: max(1, p.line)}, fmt.Sprintf(format, args...)})
}

func (r *merrittReader) fate(p property, kind FateKind, format string, args ...any) {
	r.Fates = append(r.Fates, Fate{[]string{p.name}, p.line, kind, fmt.Sprintf(format, args...)})
}

// folded does what fate does, and joins properties with the same fate in consecutive lines.
func (r *merrittReader) folded(p property, kind FateKind, text string) {
	if n := len(r.Fates); n > 0 && r.Fates[n-1].Kind == kind && r.Fates[n-1].Text == text {
		r.Fates[n-1].Properties = append(r.Fates[n-1].Properties, p.name)
		return
	}
	r.fate(p, kind, "%s", text)
}

// set records the line from which a part of the profile was made.
func (r *merrittReader) set(p property, path string) { r.places[path] = Place{Line: p.line} }

// kind refuses profiles of owners, service level agreements and services.
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
		r.fault(id, "ProfileID %s is not that of a collection; %s", id.value, wanted)
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
			r.fault(p, "%s %s is unknown, so it is unclear what the profile is for; %s", name, p.value, wanted)
		}
	}
}

// reasons says, by property, why it has no effect here.
func reasons() map[string]string {
	return map[string]string{
		"NotificationFormat": "mails here are text and HTML, with lists as JSON and CSV",
		"NotificationType":   "reports here always list each object, failed or not",
		"StorageService":     "storages have names here",
		"EZID_co-owner":      "co-owners are not set here; set them at EZID",
		"Context":            "Merritt sent it to EZID as mrt.creator; Holdfast does not",
		"CreationDate":       "profile versions have the time of their import here",
		"ModificationDate":   "profile versions have the time of their import here",
		"Type":               "it only says that this is the profile of a collection",
		"Role":               "it only says that this is the profile of a collection",
		"Aggregate":          "it only says that this is the profile of a collection",
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
			r.fault(p, "Identifier-scheme %s: objects have only ARKs here", p.value)
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
			r.fault(p, "Priority %s is not a whole number", p.value)
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
		r.fate(p, LeftOut, "there is nothing like it here")
	}
}

func (r *merrittReader) to() *registry.MailRules {
	if r.Profile.Mail == nil {
		r.Profile.Mail = &registry.MailRules{}
	}
	return r.Profile.Mail
}

// mail sets which mails are sent. Merritt sends one when a batch is queued and one with its report,
// unless that is suppressed.
func (r *merrittReader) mail() {
	rules, p := r.to(), r.suppression
	switch strings.ToLower(p.value) {
	case "":
		rules.Queued = true
	case "partial":
		r.fate(p, Taken, "no mails when batches are queued")
	case "full":
		rules.FailuresOnly = true
		r.fate(p, Changed, "mail.failures_only: no mails about successful batches; failures are always reported here")
	default:
		r.fault(p, "NotificationSuppression %s is unknown; use partial or full", p.value)
	}
	if len(rules.To) == 0 && !rules.Queued && !rules.FailuresOnly {
		r.Profile.Mail = nil
	}
}

// callback takes a receiver's address without its credentials, and appends the path that Merritt
// appends. As in Merritt, a receiver that cannot be reached fails no job.
func (r *merrittReader) callback(p property) {
	u, err := url.Parse(p.value)
	if err != nil || u.Hostname() == "" {
		r.fault(p, "CallbackURL is not an address; write https://HOST/PATH") // and may have a password in it
		return
	}
	said := "callback.url, with /mc/{job} as in Merritt; the message is JSON with the same fields"
	if u.User != nil {
		password, _ := u.User.Password()
		r.Login = &Login{Origin: u.Scheme + "://" + u.Host, User: u.User.Username(), password: password}
		u.User = nil
		said += fmt.Sprintf(". Its user and password are not stored in the profile; set them: holdfast collection credential set %s %s --basic %s",
			r.Mnemonic, r.Login.Origin, r.Login.User)
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.String(), "?#{}") {
		r.fault(p, "CallbackURL has a query, a fragment or a brace, which a callback's address must not have")
		return
	}
	address := strings.TrimSuffix(u.String(), "/") + "/mc/{job}"
	r.Profile.Callback = &registry.Callback{URL: address, GoesOn: true}
	r.set(p, "callback")
	r.fate(p, Changed, "%s", said+". A receiver that cannot be reached does not fail the job (callback.goes_on)")
}

// storage sets the storages that replace a node.
func (r *merrittReader) storage(p property) {
	names, ok := r.storages[p.value]
	if !ok {
		r.fate(p, LeftOut, "versions go to the default storage; choose others with --storage %s=NAME[,NAME]", p.value)
		return
	}
	r.Profile.Storages = names
	r.set(p, "storages")
	r.fate(p, Changed, "storages: %s", strings.Join(names, ", "))
}

// mask is the part of the template after the shoulder, as in the service's default.
const mask = "{.reeeeeeeek}"

// names sets how objects are named: by the shoulder at EZID, or else by the namespace.
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
		r.fate(p, Changed, "minting: ezid, noid_template: %s. Names are minted here and registered at EZID; the workers need HOLDFAST_EZID_URL and its account", template)
	default:
		r.fault(p, "ObjectMinterURL does not name a shoulder at EZID (https://HOST/shoulder/ark:/NAAN/SHOULDER); remove it to mint names here")
	}
	p = r.namespace
	template, ok = shoulder(p.value)
	switch {
	case p.value == "":
	case f.NOIDTemplate != "" && (!ok || template == f.NOIDTemplate):
		r.fate(p, LeftOut, "the shoulder of ObjectMinterURL is used")
	case f.NOIDTemplate != "":
		r.fault(p, "Identifier-namespace %s differs from the shoulder of ObjectMinterURL; remove one of the two", p.value)
	case ok:
		f.NOIDTemplate = template
		r.set(p, "noid_template")
		r.fate(p, Changed, "noid_template: %s. Names are minted here", template)
	default:
		r.fate(p, LeftOut, "it is not a template; names are minted from the service's own, HOLDFAST_NAAN and HOLDFAST_NOID_TEMPLATE")
	}
}
