package profile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

// merrittPassword stands in callbacks' addresses, and must not stand anywhere else.
const merrittPassword = "geheim-und-lang"

const merrittProfile = `# a collection
ProfileID: maps_content
ProfileDescription: Maps and plans, müde
Identifier-scheme: ARK
Identifier-namespace = 99999/fk4
Collection.1: ark:/99999/maps
Collection.2: ark:/99999/all
Type: MRT-curatorial
Role:MRT-content
Aggregate:
Owner: ark:/99999/owner
Notification.1: ann@example.org
Notification.2: bob@example.org
NotificationType: verbose
NotificationSuppression: partial
! phases
HandlerQueue.1: org.example.HandlerDisaggregate
HandlerQueue.2: org.example.HandlerSubmit
HandlerProcess.1: org.example.HandlerMinter
StorageService: http://store.example.org
StorageNode: 9501
CreationDate: 2012-05-04T10:00:00
ObjectMinterURL: https://ezid.example.org/shoulder/ark:/99999/fk4
CallbackURL: https://ann:` + merrittPassword + `@r.example.org:8443/merritt/
Priority: 12
SuppressDublinCoreLocalID: true
Context: maps
DataoneURL: http://d.example.org
`

func TestParseMerritt(t *testing.T) {
	m, err := profile.ParseMerritt([]byte(merrittProfile), map[string][]string{"9501": {"main", "second"}})
	if err != nil {
		t.Fatal(err)
	}
	want := registry.Profile{
		Description: "Maps and plans, müde", Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/maps", "ark:/99999/all"},
		NOIDTemplate: "99999/fk4{.reeeeeeeek}", Minting: registry.MintEZID, Priority: number(12), SuppressDCLocalIDs: true,
		Storages: []string{"main", "second"}, Callback: &registry.Callback{URL: "https://r.example.org:8443/merritt/mc/{job}", GoesOn: true},
		Mail: &registry.MailRules{To: []string{"ann@example.org", "bob@example.org"}},
	}
	if diff := cmp.Diff(want, m.Profile); m.Mnemonic != "maps" || diff != "" {
		t.Errorf("%s (-want +got):\n%s", m.Mnemonic, diff)
	}
	var fates []string
	for _, f := range m.Fates {
		text, _, _ := strings.Cut(f.Text, ".")
		fates = append(fates, fmt.Sprintf("%d %s: %s: %s", f.Line, strings.Join(f.Properties, ","), f.Kind, text))
	}
	if diff := cmp.Diff([]string{
		"2 ProfileID: taken: the collection is maps", "3 ProfileDescription: taken: description", "4 Identifier-scheme: taken: every object has an ARK",
		"5 Identifier-namespace: left out: the shoulder of ObjectMinterURL is used", "6 Collection.1: taken: collections", "7 Collection.2: taken: collections",
		"8 Type: left out: it only says that this is the profile of a collection", "9 Role: left out: it only says that this is the profile of a collection",
		"10 Aggregate: left out: it is empty", "11 Owner: taken: owner", "12 Notification.1: taken: mail", "13 Notification.2: taken: mail",
		"14 NotificationType: left out: reports here always list each object, failed or not", "15 NotificationSuppression: taken: no mails when batches are queued",
		"17 HandlerQueue.1,HandlerQueue.2,HandlerProcess.1: left out: the stages of a job are the same for all collections here",
		"20 StorageService: left out: storages have names here", "21 StorageNode: changed: storages: main, second",
		"22 CreationDate: left out: profile versions have the time of their import here",
		"23 ObjectMinterURL: changed: minting: ezid, noid_template: 99999/fk4{", "24 CallbackURL: changed: callback", "25 Priority: taken: priority",
		"26 SuppressDublinCoreLocalID: taken: suppress_dc_local_ids", "27 Context: left out: Merritt sent it to EZID as mrt", "28 DataoneURL: left out: there is nothing like it here",
	}, fates); diff != "" {
		t.Errorf("fates (-want +got):\n%s", diff)
	}
	if l := m.Login; l == nil || l.Origin != "https://r.example.org:8443" || l.User != "ann" || l.Password() != merrittPassword {
		t.Errorf("login %+v", l)
	}
	all, err := json.Marshal(m)
	if err != nil || strings.Contains(string(all), merrittPassword) {
		t.Errorf("the password is told by %s, %v", all, err)
	}
	for _, f := range m.Fates {
		if strings.Contains(f.Text, merrittPassword) {
			t.Errorf("the password is told by %+v", f)
		}
		if f.Properties[0] == "CallbackURL" && !strings.Contains(f.Text, "credential set maps https://r.example.org:8443 --basic ann") {
			t.Errorf("%q does not say how to set the credential", f.Text)
		}
	}
	for location, want := range map[string]int{"body.collections[1]": 7, "body.mail.to[1]": 13, "body.callback.url": 24, "body.storages[1]": 21, "body.name": 0} {
		if got := m.Place(location).Line; got != want {
			t.Errorf("%s is of line %d, want %d", location, got, want)
		}
	}
}

const leastMerritt = "ProfileID: maps_content\nOwner: ark:/99999/o\nCollection.1: ark:/99999/c\n"

// TestParseMerritt_Defaults checks that properties that are not set have Merritt's defaults.
func TestParseMerritt_Defaults(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       func(*registry.Profile)
	}{
		{"nothing", "", func(*registry.Profile) {}},
		{"none queued", "NotificationSuppression: partial", func(p *registry.Profile) { p.Mail = nil }},
		{"failures stay", "NotificationSuppression: full", func(p *registry.Profile) { p.Mail = &registry.MailRules{FailuresOnly: true} }},
		{"minted here", "Identifier-namespace: ark:/13030/qt", func(p *registry.Profile) { p.NOIDTemplate = "13030/qt{.reeeeeeeek}" }},
		{"no shoulder", "Identifier-namespace: 13030", func(*registry.Profile) {}},
		{"a node of no name", "StorageNode: 1", func(*registry.Profile) {}},
		{"not suppressed", "SuppressDublinCoreLocalID: False", func(*registry.Profile) {}},
		{"no credential", "CallbackURL: http://r.example.org", func(p *registry.Profile) {
			p.Callback = &registry.Callback{URL: "http://r.example.org/mc/{job}", GoesOn: true}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := profile.ParseMerritt([]byte(strings.ReplaceAll(leastMerritt+tt.line, "\n", "\r\n")), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := registry.Profile{Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, Mail: &registry.MailRules{Queued: true}}
			tt.want(&want)
			if diff := cmp.Diff(want, m.Profile); diff != "" || m.Login != nil {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
			if want := 3 + min(1, len(tt.line)); len(m.Fates) != want {
				t.Errorf("%d fates, want %d: %+v", len(m.Fates), want, m.Fates)
			}
		})
	}
}

func TestParseMerritt_Refused(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"an owner", "ProfileID: cdl_owner\nType: MRT-system\nRole: MRT-class\nAggregate: MRT-owner\n", []string{
			"1 ProfileID cdl_owner is not that of a collection; only profiles of collections are imported, whose ProfileID ends in _content",
			"2 Type MRT-system makes it a profile of the system's own objects; only profiles of collections are imported, whose ProfileID ends in _content",
			"3 Role MRT-class makes it a profile of a collection as an object of its own; only profiles of collections are imported, whose ProfileID ends in _content",
			"4 Aggregate MRT-owner makes it a profile of an owner; only profiles of collections are imported, whose ProfileID ends in _content",
		}},
		{"an agreement by another name", leastMerritt + "Aggregate: MRT-service-level-agreement", []string{
			"4 Aggregate MRT-service-level-agreement makes it a profile of a service level agreement; only profiles of collections are imported, whose ProfileID ends in _content",
		}},
		{"a service", "ServiceName: ingest\n", []string{"1 it has no ProfileID; only profiles of collections are imported, whose ProfileID ends in _content"}},
		{"of what nobody knows", leastMerritt + "Role: MRT-other", []string{
			"4 Role MRT-other is unknown, so it is unclear what the profile is for; only profiles of collections are imported, whose ProfileID ends in _content",
		}},
		{"no owner", "ProfileID: a_content\n", []string{"1 it has no Owner, which every collection has", "1 it has no Collection.1, which every collection has"}},
		{"other names", leastMerritt + "Identifier-scheme: DOI\nObjectMinterURL: https://e.example.org/mint\nIdentifier-namespace: x y", []string{
			"4 Identifier-scheme DOI: objects have only ARKs here",
			"5 ObjectMinterURL does not name a shoulder at EZID (https://HOST/shoulder/ark:/NAAN/SHOULDER); remove it to mint names here",
		}},
		{"two shoulders", leastMerritt + "ObjectMinterURL: https://e.example.org/shoulder/ark:/99999/fk4\nIdentifier-namespace: 99999/fk5", []string{
			"5 Identifier-namespace 99999/fk5 differs from the shoulder of ObjectMinterURL; remove one of the two",
		}},
		{"values", leastMerritt + "Priority: low\nNotificationSuppression: most\nSuppressDublinCoreLocalID: perhaps\nCallbackURL: https://a:" + merrittPassword + "@h/?q=1", []string{
			"4 Priority low is not a whole number", "5 NotificationSuppression most is unknown; use partial or full",
			"6 SuppressDublinCoreLocalID perhaps is neither true nor false", "7 CallbackURL has a query, a fragment or a brace, which a callback's address must not have",
		}},
		{"no address", leastMerritt + "CallbackURL: a:" + merrittPassword + "@h/", []string{"4 CallbackURL is not an address; write https://HOST/PATH"}},
		{"what Java reads otherwise", leastMerritt + "ProfileDescription: a\\\n  b\nOwner: again\nno property\nA B: c\nX: \xff", []string{
			"4 the line has a backslash, which Java reads as an escape; remove it",
			"5 not a property; write NAME: VALUE", "6 Owner is already on line 2; remove one of the two",
			"7 not a property; write NAME: VALUE", "8 not a property; write NAME: VALUE", "9 it is not UTF-8; convert the file",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := profile.ParseMerritt([]byte(tt.text), nil)
			var got []string
			for _, f := range faultsIn(t, err) {
				got = append(got, fmt.Sprintf("%d %s", f.Line, f.Message))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), merrittPassword) {
				t.Errorf("%v tells the password", err)
			}
		})
	}
}

// FuzzParseMerritt checks that a file is either refused with lines or reported with what became of
// each property.
func FuzzParseMerritt(f *testing.F) {
	f.Add([]byte(merrittProfile))
	for _, seed := range []string{leastMerritt, "ProfileID=_content", "ProfileID: a_content\rOwner:o\rCollection.1=c\rObjectMinterURL: /shoulder/ark:/1/2", leastMerritt + "CallbackURL: //u:p@h", "\ufeff#\n!\n:"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := profile.ParseMerritt(text, map[string][]string{"1": {"main"}})
		if err != nil {
			faultsIn(t, err)
			return
		}
		if m.Mnemonic == "" || m.Profile.Owner == "" || len(m.Profile.Collections) == 0 {
			t.Errorf("%+v of %q", m, text)
		}
		told := map[string]bool{}
		for _, fate := range m.Fates {
			for _, name := range fate.Properties {
				if told[name] || fate.Line < 1 || fate.Text == "" {
					t.Errorf("%s is told twice or not at all: %+v", name, m.Fates)
				}
				told[name] = true
			}
		}
		for line := range strings.FieldsFuncSeq(strings.TrimPrefix(string(text), "\ufeff"), func(r rune) bool { return r == '\n' || r == '\r' }) {
			line = strings.Trim(line, " \t\f")
			if name := line[:max(0, strings.IndexAny(line, ":= \t"))]; name != "" && name[0] != '#' && name[0] != '!' && !told[name] {
				t.Errorf("nothing is told of %q", name)
			}
		}
		if m.Login != nil {
			if all, err := json.Marshal(m); err != nil || len(m.Login.Password()) > 12 && strings.Contains(string(all), m.Login.Password()) && !strings.Contains(m.Login.Origin+m.Login.User, m.Login.Password()) && strings.Count(string(text), m.Login.Password()) == 1 {
				t.Errorf("the password is told by %s, %v", all, err)
			}
		}
	})
}
