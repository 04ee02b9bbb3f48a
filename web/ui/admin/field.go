package admin

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/wire"
)

// fieldKind says how a field of a form looks.
type fieldKind string

const (
	kindText   fieldKind = "text"
	kindLong   fieldKind = "long"  // text of several lines
	kindLines  fieldKind = "lines" // a list, one value a line
	kindNumber fieldKind = "number"
	kindCheck  fieldKind = "check"
	kindChoice fieldKind = "choice"
)

// field is a field of a profile's form. Its name is that of its part of the profile, such as mail.to.
type field struct {
	Name, Label, Hint string
	Kind              fieldKind
	Options           []option
	Required          bool
	Value             string // as people typed it; of a check "yes" or ""
	Faults            []wire.Fault

	part func(*registry.Profile) any // a pointer to its part
}

// option is one of the values of a choice.
type option struct{ Value, Label string }

// group is some fields of a form with a heading.
type group struct {
	Title  string
	Fields []field
}

// callbackOf, rightsOf and mailOf return a part of a profile to change, and make it where there is none.
func callbackOf(p *registry.Profile) *registry.Callback {
	if p.Callback == nil {
		p.Callback = &registry.Callback{}
	}
	return p.Callback
}

func rightsOf(p *registry.Profile) *registry.Rights {
	if p.Terms.Rights == nil {
		p.Terms.Rights = &registry.Rights{}
	}
	return p.Terms.Rights
}

// basisOptions are the bases of rights, and none.
func basisOptions(t lang.Texts) []option {
	return []option{
		{"", t.T("nothing is stated")},
		{string(registry.Copyright), t.T("copyright")},
		{string(registry.License), t.T("license")},
		{string(registry.Statute), t.T("statute")},
		{string(registry.OtherRights), t.T("another basis")},
	}
}

// statusOptions are the statuses of a copyright, and none.
func statusOptions(t lang.Texts) []option {
	return []option{{"", t.T("nothing is stated")}, {"copyrighted", t.T("copyrighted")}, {"public domain", t.T("public domain")}, {"unknown", t.T("unknown")}}
}

func mailOf(p *registry.Profile) *registry.MailRules {
	if p.Mail == nil {
		p.Mail = &registry.MailRules{}
	}
	return p.Mail
}

// fields are the main fields of a profile. The steps and the BagIt profile are documents of their own,
// which people edit as text.
func fields(t lang.Texts) []group {
	return []group{
		{t.T("What it is"), []field{
			{Name: "name", Label: t.T("Name for people"), Hint: t.T("The collection's short name if empty."), Kind: kindText, part: func(p *registry.Profile) any { return &p.Name }},
			{Name: "description", Label: t.T("Description"), Kind: kindLong, part: func(p *registry.Profile) any { return &p.Description }},
			{Name: "owner", Label: t.T("Owner"), Hint: t.T("The ARK under which local identifiers are unique, such as ark:/99999/owner."), Kind: kindText, Required: true, part: func(p *registry.Profile) any { return &p.Owner }},
			{Name: "collections", Label: t.T("Objects become members of"), Hint: t.T("ARKs, one a line; at least one."), Kind: kindLines, Required: true, part: func(p *registry.Profile) any { return &p.Collections }},
			{Name: "embargo", Label: t.T("Embargo"), Hint: t.T("A note for people. The day below is enforced, not this."), Kind: kindText, part: func(p *registry.Profile) any { return &p.Embargo }},
		}},
		{t.T("Terms of objects whose deposit gives none"), []field{
			{Name: "terms.preservation_level", Label: t.T("Preservation level"), Hint: t.T("In your institution's words, such as bit-level or full."), Kind: kindText, part: func(p *registry.Profile) any { return &p.Terms.PreservationLevel }},
			{Name: "terms.embargo_until", Label: t.T("Embargo until"), Hint: t.T("The first day (UTC) on which others than admins may read the files, such as 2030-01-01."), Kind: kindText, part: func(p *registry.Profile) any { return &p.Terms.EmbargoUntil }},
			{Name: "terms.embargo_reason", Label: t.T("Reason of the embargo"), Hint: t.T("Readers who are refused see it."), Kind: kindText, part: func(p *registry.Profile) any { return &p.Terms.EmbargoReason }},
			{Name: "terms.rights.basis", Label: t.T("Rights"), Kind: kindChoice, Options: basisOptions(t), part: func(p *registry.Profile) any { return (*string)(&rightsOf(p).Basis) }},
			{Name: "terms.rights.status", Label: t.T("Copyright status"), Kind: kindChoice, Options: statusOptions(t), part: func(p *registry.Profile) any { return &rightsOf(p).Status }},
			{Name: "terms.rights.jurisdiction", Label: t.T("Whose law"), Hint: t.T("A country's two letters, such as de; for a copyright or a statute."), Kind: kindText, part: func(p *registry.Profile) any { return &rightsOf(p).Jurisdiction }},
			{Name: "terms.rights.statement", Label: t.T("Rights statement"), Hint: t.T("A note, the terms of the license, or the citation of the statute."), Kind: kindLong, part: func(p *registry.Profile) any { return &rightsOf(p).Statement }},
			{Name: "terms.rights.uri", Label: t.T("Address of the statement or license"), Kind: kindText, part: func(p *registry.Profile) any { return &rightsOf(p).URI }},
		}},
		{t.T("How objects are kept"), []field{
			{Name: "storages", Label: t.T("Storages"), Hint: t.T("One a line. A version is written to the first and copied to the others. Empty: the storage named storage."), Kind: kindLines, part: func(p *registry.Profile) any { return &p.Storages }},
			{Name: "copies", Label: t.T("Copies that each object shall have"), Hint: t.T("One in each storage if empty; holdfast storage list says where there are fewer."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.Copies }},
			{Name: "offsite_copies", Label: t.T("How many of them off-site"), Hint: t.T("None if empty; holdfast storage list says which storages are off-site."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.OffsiteCopies }},
			{Name: "noid_template", Label: t.T("Template of new ARKs"), Hint: t.T("The service's own if empty."), Kind: kindText, part: func(p *registry.Profile) any { return &p.NOIDTemplate }},
			{Name: "minting", Label: t.T("New ARKs are registered"), Kind: kindChoice, Options: []option{{"", t.T("as the service does by default")}, {registry.MintLocally, t.T("only here")}, {registry.MintEZID, t.T("here and with EZID")}}, part: func(p *registry.Profile) any { return &p.Minting }},
			{Name: "digest_algorithm", Label: t.T("Digest of inventories"), Kind: kindChoice, Options: []option{{"", t.T("the one that the collection has")}, {"sha256", t.T("SHA-256")}, {"sha512", t.T("SHA-512")}}, part: func(p *registry.Profile) any { return &p.DigestAlgorithm }},
			{Name: "retention_days", Label: t.T("Completed batches are kept for days"), Hint: t.T("Empty: until an admin purges them. Objects and events stay."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.RetentionDays }},
		}},
		{t.T("How deposits are taken"), []field{
			{Name: "priority", Label: t.T("Priority"), Hint: t.T("Of batches that set none; lower comes first."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.Priority }},
			{Name: "duplicate_days", Label: t.T("The same content again is a duplicate for days"), Hint: t.T("30 if empty; 0: never."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.DuplicateDays }},
			{Name: "scan", Label: t.T("Scan every file for viruses before anything is preserved"), Kind: kindCheck, part: func(p *registry.Profile) any { return &p.Scan }},
			{Name: "scan_partly", Label: t.T("Preserve files that cannot be scanned completely, and record them as not scanned"), Kind: kindCheck, part: func(p *registry.Profile) any { return &p.ScanPartly }},
			{Name: "stop_on_bad_row", Label: t.T("One bad row of a manifest refuses the whole batch"), Kind: kindCheck, part: func(p *registry.Profile) any { return &p.StopOnBadRow }},
			{Name: "release_one_by_one", Label: t.T("After a hold each batch and job is released on its own"), Kind: kindCheck, part: func(p *registry.Profile) any { return &p.ReleaseOneByOne }},
			{Name: "suppress_dc_local_ids", Label: t.T("A dc:identifier does not become a local identifier"), Kind: kindCheck, part: func(p *registry.Profile) any { return &p.SuppressDCLocalIDs }},
			{Name: "name_encoding", Label: t.T("Encoding of names that are not UTF-8"), Hint: t.T("Such as cp437 or windows-1252. Such names are refused if empty."), Kind: kindText, part: func(p *registry.Profile) any { return &p.NameEncoding }},
			{Name: "upload_bytes", Label: t.T("Most bytes of its uploads together"), Hint: t.T("The service's setting if empty."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.UploadBytes }},
			{Name: "uploads_open", Label: t.T("Most unfinished uploads"), Hint: t.T("The service's setting if empty."), Kind: kindNumber, part: func(p *registry.Profile) any { return &p.UploadsOpen }},
		}},
		{t.T("Who is told"), []field{
			{Name: "callback.url", Label: t.T("Callback"), Hint: t.T("Receives each job's outcome. Without user, password and query; {job} stands for the job's id."), Kind: kindText, part: func(p *registry.Profile) any { return &callbackOf(p).URL }},
			{Name: "callback.goes_on", Label: t.T("A failed callback does not fail the job; it is retried for days"), Kind: kindCheck, part: func(p *registry.Profile) any { return &callbackOf(p).GoesOn }},
			{Name: "callback.completed_only", Label: t.T("Failed jobs are not told to the callback"), Kind: kindCheck, part: func(p *registry.Profile) any { return &callbackOf(p).CompletedOnly }},
			{Name: "mail.to", Label: t.T("Mail to"), Hint: t.T("Addresses, one a line."), Kind: kindLines, part: func(p *registry.Profile) any { return &mailOf(p).To }},
			{Name: "mail.allow", Label: t.T("Other addresses that depositors may name"), Hint: t.T("Addresses, and domains such as example.org or *.example.org, one a line."), Kind: kindLines, part: func(p *registry.Profile) any { return &mailOf(p).Allow }},
			{Name: "mail.queued", Label: t.T("A mail for each accepted batch"), Kind: kindCheck, part: func(p *registry.Profile) any { return &mailOf(p).Queued }},
			{Name: "mail.safe", Label: t.T("A mail when every copy of a batch is verified"), Kind: kindCheck, part: func(p *registry.Profile) any { return &mailOf(p).Safe }},
			{Name: "mail.failures_only", Label: t.T("No report for batches without failures"), Kind: kindCheck, part: func(p *registry.Profile) any { return &mailOf(p).FailuresOnly }},
		}},
	}
}

// show fills the fields with the values of a profile.
func show(groups []group, p registry.Profile) {
	for _, g := range groups {
		for i := range g.Fields {
			g.Fields[i].Value = textOf(g.Fields[i].part(&p))
		}
	}
}

// textOf is a part of a profile as people type it.
func textOf(part any) string {
	switch v := part.(type) {
	case *string:
		return *v
	case *[]string:
		return strings.Join(*v, "\n")
	case *bool:
		if *v {
			return "yes"
		}
	case **int:
		if *v != nil {
			return strconv.Itoa(**v)
		}
	case **int64:
		if *v != nil {
			return strconv.FormatInt(**v, 10)
		}
	}
	return ""
}

// read changes a profile to what people typed, and keeps that in the fields. What it could not read is
// a fault.
func read(groups []group, form url.Values, p *registry.Profile) (faults []wire.Fault) {
	for _, g := range groups {
		for i := range g.Fields {
			f := &g.Fields[i]
			f.Value = strings.TrimSpace(form.Get(f.Name))
			if err := setPart(f.part(p), f.Value); err != nil {
				faults = append(faults, wire.Fault{Location: "body." + f.Name, Message: err.Error()})
			}
		}
	}
	if p.Callback != nil && *p.Callback == (registry.Callback{}) {
		p.Callback = nil
	}
	if p.Terms.Rights != nil && *p.Terms.Rights == (registry.Rights{}) {
		p.Terms.Rights = nil
	}
	if p.Mail != nil && reflect.ValueOf(*p.Mail).IsZero() {
		p.Mail = nil
	}
	return faults
}

// setPart sets a part of a profile to what people typed.
func setPart(part any, text string) error {
	switch v := part.(type) {
	case *string:
		*v = strings.ReplaceAll(text, "\r\n", "\n") // as forms send the ends of lines
	case *[]string:
		*v = lines(text)
	case *bool:
		*v = text != ""
	case **int:
		n, err := wholeNumber(text)
		if *v = nil; n != nil {
			small := int(*n)
			*v = &small
		}
		return err
	case **int64:
		n, err := wholeNumber(text)
		*v = n
		return err
	}
	return nil
}

// lines are the values of a list, one a line; nil if there are none.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// wholeNumber reads a number; nil if there is none.
func wholeNumber(text string) (*int64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no number is no fault
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%.50q is not a whole number", text)
	}
	return &n, nil
}

// mark puts faults beside their fields, and returns those of no field.
func mark(groups []group, faults []wire.Fault) (others []wire.Fault) {
	for _, fault := range faults {
		name, ok := strings.CutPrefix(fault.Location, "body.")
		if base, _, listed := strings.Cut(name, "["); listed {
			name = base
		}
		if !ok || !markField(groups, name, fault) {
			others = append(others, fault)
		}
	}
	return others
}

func markField(groups []group, name string, fault wire.Fault) bool {
	for _, g := range groups {
		for i := range g.Fields {
			if g.Fields[i].Name == name {
				g.Fields[i].Faults = append(g.Fields[i].Faults, fault)
				return true
			}
		}
	}
	return false
}
