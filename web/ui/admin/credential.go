package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// credentialsPage is the content of the page of a collection's or subscription's credentials. It never
// has a secret.
type credentialsPage struct {
	List, ListName string // the list of the owners
	Name, Home     string // of the owner, and its page
	Buckets        bool   // whether buckets have credentials here
	Rows           []wire.Credential
	Kinds          []registry.CredentialKind
	Set            string // origin of the credential that was just set
}

// credentialOwner is what differs between the credentials of collections and of subscriptions.
type credentialOwner struct {
	section string
	buckets bool
	base    func(name string) string
	list    func(ctx context.Context, name string) ([]wire.Credential, error)
	put     func(ctx context.Context, name string, r wire.CredentialRequest) (wire.Credential, error)
	remove  func(ctx context.Context, name, origin string) error
}

// credentialsOf adds the pages of the credentials of collections or subscriptions.
func (p pages) credentialsOf(o credentialOwner) {
	path := "/" + o.section + "/{name}/credentials"
	p.Get(path, func(r *http.Request) (page.Page, error) {
		return p.credentials(r, o, credentialsPage{Set: r.URL.Query().Get("set")})
	})
	p.Post(path, func(r *http.Request) (string, *page.Page, error) { return p.setCredential(r, o) })
	p.Post(path+"/remove", func(r *http.Request) (string, *page.Page, error) {
		name := r.PathValue("name")
		if err := o.remove(r.Context(), name, r.PostForm.Get("origin")); err != nil && !isNotFound(err) {
			return "", nil, err
		}
		return o.base(name) + "/credentials", nil, nil
	})
}

func (p pages) credentials(r *http.Request, o credentialOwner, content credentialsPage) (page.Page, error) {
	t := p.Texts(r)
	content.Name, content.Buckets, content.List = r.PathValue("name"), o.buckets, "/"+o.section
	content.Home = o.base(content.Name)
	if content.ListName = t.T("Collections"); !o.buckets {
		content.ListName = t.T("Subscriptions")
	}
	for _, kind := range registry.CredentialKinds() {
		if o.buckets || !kind.ForBucket() {
			content.Kinds = append(content.Kinds, kind)
		}
	}
	var err error
	if content.Rows, err = o.list(r.Context(), content.Name); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "credentials", Title: t.T("Credentials") + ": " + content.Name, Section: o.section, Content: content}, nil
}

// setCredential sets a credential.
func (p pages) setCredential(r *http.Request, o credentialOwner) (string, *page.Page, error) {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	name := r.PathValue("name")
	request := wire.CredentialRequest{
		Origin: field("origin"), Kind: field("kind"), Name: field("name"), Secret: r.PostForm.Get("secret"),
		Endpoint: field("endpoint"), Region: field("region"), PathStyle: field("path_style") != "",
	}
	set, err := o.put(r.Context(), name, request)
	if err != nil {
		return "", nil, err
	}
	return o.base(name) + "/credentials?" + url.Values{"set": {set.Origin}}.Encode(), nil, nil
}
