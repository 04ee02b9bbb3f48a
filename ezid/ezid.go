// Package ezid registers the names of objects at EZID, the service that publishes ARKs.
//
// Holdfast chooses the names. EZID gets each name by an idempotent PUT with the id of the item that
// it was chosen for. So a retry after a crash or a lost answer finds its own name and takes no
// second one (R8). Every call may be repeated with the same result.
//
// Source: the EZID API, version 2 (ezid.cdlib.org/doc/apidoc.html).
package ezid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metadata"
)

// ARKField is the placeholder for the percent-encoded ARK in [Options.Target].
const ARKField = "{ark}"

// Options configure a Client.
type Options struct {
	// URL is the service's address with user and password, percent-encoded where necessary:
	// https://user:password@ezid.cdlib.org.
	URL string
	// Target is the address that names lead to, with [ARKField] in place of the ARK. "" leaves it
	// to EZID, which uses its own page about the name.
	Target    string
	UserAgent string
	// Wait is the wait before a second try. Each further wait is twice as long. 0 means one second.
	Wait time.Duration
}

// Client is a client of one EZID. It is safe for concurrent use. Each call makes up to three tries
// of at most 20 seconds while EZID is away or fails. Every error is an *[Error] or the context's.
type Client struct {
	base           *url.URL // without credentials
	user, password string
	target         string
	agent          string
	wait           time.Duration
	http           *http.Client
}

// New returns a client. Errors describe a wrong option and never contain the password.
func New(o Options) (*Client, error) {
	u, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if err := CheckTarget(o.Target); err != nil {
		return nil, err
	}
	c := &Client{user: u.User.Username(), target: o.Target, agent: o.UserAgent, wait: o.Wait}
	c.password, _ = u.User.Password()
	u.User = nil
	u.Path = strings.TrimSuffix(u.Path, "/")
	c.base = u
	if c.wait <= 0 {
		c.wait = time.Second
	}
	c.http = newHTTP()
	return c, nil
}

// ParseURL parses the service's address, which must be http or https with user and password. The
// error never contains the password.
func ParseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the address of EZID must be http or https, such as https://user:password@ezid.cdlib.org")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address of EZID has a query or a fragment; leave it out")
	}
	if password, ok := u.User.Password(); !ok || password == "" || u.User.Username() == "" {
		return nil, fmt.Errorf("the address of EZID has no user and password; write https://user:password@%s", u.Host)
	}
	return u, nil
}

// CheckTarget returns an error if a target is invalid. "" is valid.
func CheckTarget(target string) error {
	if target == "" {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(target, ARKField, "ark"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the target of names must be an http or https address, such as https://merritt.cdlib.org/m/%s", ARKField)
	}
	if !strings.Contains(target, ARKField) {
		return fmt.Errorf("the target of names lacks %s: all names would lead to one address", ARKField)
	}
	return nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Host returns the service's host, for people.
func (c *Client) Host() string { return c.base.Host }

// Login checks that EZID answers and accepts the account. It changes nothing.
func (c *Client) Login(ctx context.Context) error {
	_, err := c.do(ctx, operation{op: "log in", method: http.MethodGet})
	return err
}

// Name is an object's name with its metadata for EZID. ARK and Item are required; Who, What and
// When are for [Client.Publish].
type Name struct {
	ARK  string   `json:"ark"`
	Item string   `json:"item"` // the item that the name was chosen for; it proves that a name is ours
	Who  []string `json:"who,omitempty"`
	What []string `json:"what,omitempty"`
	When []string `json:"when,omitempty"`
}

// The elements and values of names at EZID. Those with an underscore are defined by EZID.
const (
	itemElement   = "holdfast.item"
	statusElement = "_status"
	reserved      = "reserved"
	public        = "public"
	unavailable   = "unavailable"
)

// identity returns the elements that a name always has: its item and its target.
func (c *Client) identity(n Name, status string) metadata.Record {
	r := metadata.Record{}.Add(itemElement, n.Item).Add("_profile", "erc")
	if status != "" {
		r = r.Add(statusElement, status)
	}
	if c.target != "" {
		r = r.Add("_target", strings.ReplaceAll(c.target, ARKField, url.QueryEscape(n.ARK)))
	}
	return r
}

// whole adds the metadata in the ERC profile. EZID takes one value per element, so several are
// joined as it advises. A missing element gets ERC's code for that.
func (c *Client) whole(n Name, status string) metadata.Record {
	r := c.identity(n, status)
	for _, e := range []struct {
		label  string
		values []string
	}{{"erc.who", n.Who}, {"erc.what", n.What}, {"erc.when", n.When}} {
		value := strings.TrimSpace(strings.Join(e.values, "; "))
		if value == "" {
			value = string(metadata.Unassigned)
		}
		r = r.Add(e.label, value)
	}
	return r
}
