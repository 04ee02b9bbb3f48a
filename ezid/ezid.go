// Package ezid registers the names of objects at EZID, the service that publishes ARKs.
//
// It makes two promises. Names are chosen here: EZID gets each by an idempotent PUT with the id of
// the item that it was chosen for, so a repeat after a kill or a lost answer finds its own name and
// takes no second one (R8). And every call may be repeated after a lost answer, an outage or a
// kill, with the same result.
//
// Source: the EZID API, version 2 (ezid.cdlib.org/doc/apidoc.html).
package ezid

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metadata"
)

// ARKField is what stands for the ARK, percent-encoded, in [Options.Target].
const ARKField = "{ark}"

// Options says which EZID is asked, by whom.
type Options struct {
	// URL is the service's address with user and password, both percent-encoded where they must be:
	// https://user:password@ezid.cdlib.org.
	URL string
	// Target is the address that a name leads to, with [ARKField] where the ARK belongs. "" leaves
	// it to EZID, whose own page about the name it is then.
	Target    string
	UserAgent string
	// Wait is how long a call waits before its second try; every further wait is twice as long. 0
	// is a second.
	Wait time.Duration
}

// Client asks one EZID. Its methods may be called concurrently. Each call makes up to three tries,
// of 20 seconds at the most, when EZID is away or does not answer as it should; every error is an
// *[Error] or the context's own.
type Client struct {
	base           *url.URL // without credentials
	user, password string
	target         string
	agent          string
	wait           time.Duration
	http           *http.Client
}

// New returns a client. The error says what is wrong with an option and never repeats the password.
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

// ParseURL reads the service's address, which must be http or https and have a user and a password.
// The error never repeats it.
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

// CheckTarget says what is wrong with a target, nil for a good one and for "".
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

// Close gives idle connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Host names the service, for people.
func (c *Client) Host() string { return c.base.Host }

// Name is an object's name and what EZID is to know of it. ARK and Item must be given; who, what
// and when are for [Client.Publish].
type Name struct {
	ARK  string   `json:"ark"`
	Item string   `json:"item"` // the item that the name was chosen for: it tells our name from another's
	Who  []string `json:"who,omitempty"`
	What []string `json:"what,omitempty"`
	When []string `json:"when,omitempty"`
}

// The elements that EZID knows a name by, those with an underscore its own.
const (
	itemElement   = "holdfast.item"
	statusElement = "_status"
	reserved      = "reserved"
	public        = "public"
	unavailable   = "unavailable"
)

// identity is what a name has from the beginning: whose it is, and where it will lead.
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

// whole adds the metadata, in ERC's profile. EZID takes one value an element, so several are joined
// as it advises, and an element that nobody has given says so by ERC's code.
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
