// Package admin serves the pages of administration: collections with the versions of their profiles,
// storages, subscriptions, credentials, the audit list, and evidence reports.
package admin

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, template.FuncMap{
		"collectionURL": collectionURL, "number": number, "subscriptionURL": subscriptionURL, "joined": joined[string], "joinedActions": joined[registry.Action], "joinedStates": joined[registry.State],
		"storageActURL": storageActURL, "storageActLabel": storageActLabel, "copiesURL": copiesURL,
	}, "collections", "collection", "profile", "versions", "version", "credentials", "audit", "evidence",
		"subscriptions", "subscription", "subscriptionform", "storages", "storage", "copies", "storageact")
	s.Get("/collections", p.collections)
	s.Get("/collections/{name}", p.collection)
	s.Get("/collections/{name}/edit", p.editProfile)
	s.Post("/collections/{name}/edit", p.saveProfile)
	s.Get("/collections/{name}/versions", p.versions)
	s.Get("/collections/{name}/versions/{version}", p.version)
	s.Post("/collections/{name}/hold", p.holdCollection)
	s.Post("/collections/{name}/release", p.releaseCollection)
	s.Post("/collections/{name}/limit", p.limitCollection)
	p.credentialsOf(credentialOwner{
		section: "collections", buckets: true, base: collectionURL, list: p.API.Credentials, put: p.API.PutCredential, remove: p.API.RemoveCredential,
	})
	p.credentialsOf(credentialOwner{
		section: "subscriptions", base: subscriptionURL, list: p.API.SubscriptionCredentials, put: p.API.PutSubscriptionCredential, remove: p.API.RemoveSubscriptionCredential,
	})
	s.Get("/subscriptions", p.subscriptions)
	s.Get("/subscriptions/{name}", p.subscription)
	s.Post("/subscriptions/{name}", p.actOnSubscription)
	s.Get("/subscriptions/{name}/edit", p.editSubscription)
	s.Post("/subscriptions/{name}/edit", p.saveSubscription)
	s.Get("/new/subscription", p.editSubscription)
	s.Post("/new/subscription", p.saveSubscription)
	s.Get("/audit", p.audit)
	s.Serve("GET /audit.csv", p.auditCSV)
	s.Get("/evidence", p.evidence)
	s.Serve("GET /evidence.zip", p.evidenceZip)
	p.addStorages()
	s.Get("/new/collection", p.newCollection)
	s.Post("/new/collection", p.saveProfile)
}

// need returns the error of a viewer who may not call an operation.
func (p pages) need(r *http.Request, operation string) error {
	if !p.May(r.Context(), operation) {
		return page.Forbidden()
	}
	return nil
}

// collectionURL is the address of a collection's page.
func collectionURL(name string) string { return "/collections/" + url.PathEscape(name) }

// number is a number that is set.
func number(n *int) int { return *n }

func isNotFound(err error) bool { return errors.Is(err, registry.ErrNotFound) }
