package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// The ways to edit a profile. Buttons of the form lead from one to another, with what was typed.
const (
	asForm = "form"
	asYAML = "yaml"
	asJSON = "json"
)

// profilePage is the form of a profile.
type profilePage struct {
	Name    string // of the collection
	New     bool
	Version int    // that was read, and that a save replaces; registry.NoVersion: none
	As      string // form, yaml or json
	Groups  []group
	Rest    string // as a form: the whole profile before the change, in JSON
	Text    string // as yaml or json

	Refused  *wire.Problem // what is wrong; nil: nothing
	Misnamed *wire.Fault   // what is wrong with the short name; nil: nothing
	Faults   []wire.Fault
	Checked  bool // the profile could be saved, and this would happen:
	Changes  []string
	Next     int // the version that a save would make
	Conflict *conflict
}

// conflict says what happened to a profile since it was read.
type conflict struct {
	Now          registry.ProfileVersion
	Theirs, Mine []string
}

// Action is the address of the form.
func (f profilePage) Action() string {
	if f.New {
		return "/new/collection"
	}
	return collectionURL(f.Name) + "/edit"
}

// newCollection shows the form of a collection that does not exist yet.
func (p pages) newCollection(r *http.Request) (page.Page, error) {
	if err := p.need(r, "put-collection"); err != nil {
		return page.Page{}, err
	}
	form := profilePage{New: true, Version: registry.NoVersion, As: wayOf(r.URL.Query())}
	return p.profileForm(r, form, registry.Profile{})
}

// editProfile shows the form of a collection's profile, with the present values or those of an older
// version.
func (p pages) editProfile(r *http.Request) (page.Page, error) {
	if err := p.need(r, "put-collection"); err != nil {
		return page.Page{}, err
	}
	ctx := r.Context()
	c, err := p.API.Collection(ctx, r.PathValue("name"))
	if err != nil {
		return page.Page{}, err
	}
	from, err := page.Number(r, "from")
	if err != nil {
		return page.Page{}, err
	}
	shown := c.Profile
	if from > 0 {
		v, err := p.API.ProfileVersion(ctx, c.Mnemonic, int(from))
		if err != nil {
			return page.Page{}, err
		}
		shown = v.Profile
	}
	shown.DigestAlgorithm = shown.Digests() // as commands show it: whatever a later version says
	return p.profileForm(r, profilePage{Name: c.Mnemonic, Version: c.Version, As: wayOf(r.URL.Query())}, shown)
}

// wayOf is the way to edit that an address or a form names.
func wayOf(values url.Values) string {
	switch as := values.Get("as"); as {
	case asYAML, asJSON:
		return as
	}
	return asForm
}

// profileForm shows a profile in the form's way to edit.
func (p pages) profileForm(r *http.Request, form profilePage, shown registry.Profile) (page.Page, error) {
	text, err := profile.JSON(shown)
	if err != nil {
		return page.Page{}, err
	}
	switch form.As {
	case asYAML:
		text, err = profile.YAML(shown)
		form.Text = string(text)
	case asJSON:
		var indented bytes.Buffer
		err = json.Indent(&indented, text, "", "  ")
		form.Text = indented.String() + "\n"
	default:
		form.Groups, form.Rest = fields(p.Texts(r)), string(text)
		show(form.Groups, shown)
	}
	if err != nil {
		return page.Page{}, err
	}
	return p.profilePage(r, form, 0), nil
}

func (p pages) profilePage(r *http.Request, form profilePage, status int) page.Page {
	title := p.Texts(r).T("New collection")
	if !form.New {
		title = p.Texts(r).T("Profile") + ": " + form.Name
	}
	return page.Page{Name: "profile", Title: title, Section: "collections", Content: form, Status: status}
}

// typed is a profile that people typed, and how its parts are found in what they typed.
type typed struct {
	profile registry.Profile
	place   func(location string) profile.Place // nil: it was no text
}

// saveProfile does what the profile's form asks: it shows the profile in another way, tells what a
// save would change, or saves.
func (p pages) saveProfile(r *http.Request) (string, *page.Page, error) {
	if err := p.need(r, "put-collection"); err != nil {
		return "", nil, err
	}
	form := profilePage{Name: r.PathValue("name"), As: wayOf(r.PostForm), Text: r.PostForm.Get("text"), Rest: r.PostForm.Get("rest")}
	if form.Name == "" {
		form.New, form.Version, form.Name = true, registry.NoVersion, strings.TrimSpace(r.PostForm.Get("mnemonic"))
	} else {
		n, err := strconv.Atoi(r.PostForm.Get("version"))
		if err != nil || n < 1 {
			return "", nil, page.Invalid("the form does not say which version of the profile it shows")
		}
		form.Version = n
	}
	got, refusal, err := p.readProfile(r, &form)
	if err != nil {
		return "", nil, err
	}
	again := func(status int) (string, *page.Page, error) {
		shown := p.profilePage(r, form, status)
		return "", &shown, nil
	}
	do := r.PostForm.Get("do")
	if refusal != nil {
		form.Refused, form.Faults = refusal, refusal.Faults
		return again(0)
	}
	if do == asForm || do == asYAML || do == asJSON {
		form.As, form.Text, form.Rest = do, "", ""
		shown, err := p.profileForm(r, form, got.profile)
		shown.Status = http.StatusOK
		return "", &shown, err
	}
	if form.New && form.Name == "" {
		form.Refused = page.Told(http.StatusUnprocessableEntity, wire.CodeInvalid, p.Texts(r).T("the collection needs a short name"))
		form.Misnamed = &wire.Fault{Message: "the collection needs a short name"}
		return again(0)
	}
	c, err := p.API.SaveProfile(r.Context(), registry.Collection{Mnemonic: form.Name, Profile: got.profile, Version: form.Version}, do != "save")
	changed := (*registry.VersionError)(nil)
	var problem *wire.Problem
	switch refused, ok := page.Refusal(err); {
	case errors.As(err, &changed) && changed.Have > 0 && !form.New:
		if err := p.tellConflict(r, &form, got.profile); err != nil {
			return "", nil, err
		}
		return again(0)
	case errors.As(err, &changed) && errors.As(err, &problem):
		form.Refused = problem
		return again(0)
	case ok:
		form.Refused, form.Faults = refused, placed(p.Texts(r), refused.Faults, got.place)
		if i := slices.IndexFunc(form.Faults, func(f wire.Fault) bool { return f.Location == "path.name" }); i >= 0 {
			form.Misnamed = &form.Faults[i]
			form.Faults = slices.Delete(slices.Clone(form.Faults), i, i+1)
		}
		form.Faults = mark(form.Groups, form.Faults)
		return again(0)
	case err != nil:
		return "", nil, err
	case do == "save":
		return collectionURL(form.Name) + "?" + url.Values{"saved": {strconv.Itoa(c.Version)}}.Encode(), nil, nil
	}
	if err := p.tellChanges(r, &form, c.Profile); err != nil {
		return "", nil, err
	}
	form.Next = c.Version
	return again(http.StatusOK)
}

// readProfile reads what people typed. A refusal says why it is no profile.
func (p pages) readProfile(r *http.Request, form *profilePage) (got typed, refusal *wire.Problem, err error) {
	if form.As != asForm {
		doc, err := profile.Parse([]byte(form.Text))
		if faults := profile.Faults(nil); errors.As(err, &faults) {
			refusal := page.Told(http.StatusUnprocessableEntity, wire.CodeInvalid, p.Texts(r).T("this is not a valid profile"))
			for _, f := range faults {
				refusal.Faults = append(refusal.Faults, wire.Fault{Location: placeText(p.Texts(r), f.Place), Message: f.Message})
			}
			return got, refusal, nil
		} else if err != nil {
			return got, nil, err
		}
		return typed{doc.Profile, doc.Place}, nil, nil
	}
	if err := json.Unmarshal([]byte(form.Rest), &got.profile); err != nil {
		return got, nil, page.Invalid("the form is not whole: %v", err)
	}
	form.Groups = fields(p.Texts(r))
	if faults := read(form.Groups, r.PostForm, &got.profile); len(faults) > 0 {
		return got, page.Told(http.StatusUnprocessableEntity, wire.CodeInvalid, p.Texts(r).T("a number could not be read"), mark(form.Groups, faults)...), nil
	}
	return got, nil, nil
}

// placed replaces the locations of faults by their places in a text.
func placed(t lang.Texts, faults []wire.Fault, place func(string) profile.Place) []wire.Fault {
	if place == nil {
		return faults
	}
	out := make([]wire.Fault, len(faults))
	for i, f := range faults {
		if name, ok := strings.CutPrefix(f.Location, "body"); ok {
			f.Location = strings.TrimPrefix(placeText(t, place(f.Location))+", "+strings.TrimPrefix(name, "."), ", ")
		}
		out[i] = f
	}
	return out
}

// placeText is a place in a text for people; "" if it is unknown.
func placeText(t lang.Texts, at profile.Place) string {
	switch {
	case at.Line == 0:
		return ""
	case at.Column == 0:
		return t.T("line %d", at.Line)
	}
	return t.T("line %d, column %d", at.Line, at.Column)
}

// tellChanges fills in what a save would change; after is the profile after it.
func (p pages) tellChanges(r *http.Request, form *profilePage, after registry.Profile) (err error) {
	var before registry.Collection
	if !form.New {
		if before, err = p.API.Collection(r.Context(), form.Name); err != nil {
			return err
		}
	}
	form.Checked = true
	form.Changes, err = profile.Changes(before.Profile, after)
	return err
}

// tellConflict fills in what others changed since the profile was read. The next save replaces their
// version, after the person has seen it.
func (p pages) tellConflict(r *http.Request, form *profilePage, mine registry.Profile) error {
	ctx := r.Context()
	base, err := p.API.ProfileVersion(ctx, form.Name, form.Version)
	if err != nil {
		return err
	}
	now, err := p.API.ProfileVersions(ctx, form.Name, 0, 1)
	if err != nil {
		return err
	}
	found := conflict{Now: now[0]}
	if found.Theirs, err = profile.Changes(base.Profile, found.Now.Profile); err != nil {
		return err
	}
	if found.Mine, err = profile.Changes(found.Now.Profile, mine); err != nil {
		return err
	}
	form.Conflict, form.Version = &found, found.Now.Version
	return nil
}
