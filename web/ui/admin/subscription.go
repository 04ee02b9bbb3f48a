package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// subscriptionsPage is the content of the list of subscriptions.
type subscriptionsPage struct {
	Rows   []registry.Subscription
	MayAdd bool
	States []registry.Status // of deliveries, to choose from
	State  registry.Status   // of the listed ones
	Sent   []delivery        // newest first
	Prev   string
	Next   string
}

// Bounds of the list of deliveries.
const (
	deliveriesShown = 20
	actsShown       = 2 // of each; its page has all
)

// delivery is an item that delivers a message, with what the viewer may do.
type delivery struct {
	registry.WorkItem

	Buttons page.Buttons
}

func (p pages) subscriptions(r *http.Request) (page.Page, error) {
	ctx, q := r.Context(), r.URL.Query()
	content := subscriptionsPage{
		MayAdd: p.May(ctx, "put-subscription"), State: registry.Failed,
		States: []registry.Status{registry.Failed, registry.Pending, registry.Running, registry.Completed, registry.Cancelled},
	}
	if asked := registry.Status(q.Get("deliveries")); slices.Contains(content.States, asked) {
		content.State = asked
	}
	var err error
	if content.Rows, err = p.API.Subscriptions(ctx); err != nil {
		return page.Page{}, err
	}
	list, err := p.API.Items(ctx, registry.ItemQuery{
		Action: registry.DeliverMessage, Status: content.State, After: q.Get("after"), Before: q.Get("before"), Limit: deliveriesShown,
	})
	if err != nil {
		return page.Page{}, err
	}
	content.Prev, content.Next = inDeliveries(page.Prev(r, list.Prev)), inDeliveries(page.Next(r, list.Next))
	for _, it := range list.Rows {
		buttons := p.ButtonsOf(ctx, it)
		buttons.Acts = buttons.Acts[:min(len(buttons.Acts), actsShown)]
		content.Sent = append(content.Sent, delivery{it, buttons})
	}
	return page.Page{Name: "subscriptions", Title: p.Texts(r).T("Subscriptions"), Section: "subscriptions", Content: content}, nil
}

// inDeliveries is an address that shows the list of deliveries; "" stays "".
func inDeliveries(address string) string {
	if address == "" {
		return ""
	}
	return address + "#deliveries"
}

// subscriptionPage is the content of a subscription's page.
type subscriptionPage struct {
	registry.Subscription

	May   bool // change it
	Topic bool // it sends to NSQ, so that nothing is signed
}

func (p pages) subscription(r *http.Request) (page.Page, error) {
	b, err := p.API.Subscription(r.Context(), r.PathValue("name"))
	if err != nil {
		return page.Page{}, err
	}
	content := subscriptionPage{Subscription: b, May: p.May(r.Context(), "put-subscription")}
	_, content.Topic = b.Topic()
	return page.Page{Name: "subscription", Title: b.Name, Section: "subscriptions", Content: content}, nil
}

// actOnSubscription pauses, resumes, rewinds or removes a subscription.
func (p pages) actOnSubscription(r *http.Request) (to string, again *page.Page, err error) {
	ctx, name := r.Context(), r.PathValue("name")
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	to = subscriptionURL(name)
	switch do := r.PostForm.Get("do"); do {
	case "pause":
		_, err = p.API.PauseSubscription(ctx, name, reason)
	case "resume":
		_, err = p.API.ResumeSubscription(ctx, name)
	case "rewind":
		request := wire.CursorRequest{Reason: reason}
		if text := strings.TrimSpace(r.PostForm.Get("cursor")); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return "", nil, page.Wrong("cursor", p.Texts(r).T("%q is not the number of an event", text[:min(len(text), 50)]))
			}
			request.Cursor = &n
		}
		_, err = p.API.RewindSubscription(ctx, name, request)
	case "remove":
		to = "/subscriptions"
		err = p.API.RemoveSubscription(ctx, name)
	default:
		err = page.Invalid("unknown act %.50q", do)
	}
	return to, nil, err
}

// subscriptionForm is the form of a new or changed subscription.
type subscriptionForm struct {
	Name                                        string
	New                                         bool
	Target, Types, Collections, Actions, States string
	FromStart                                   bool
	Seen                                        string // what the form replaces
}

// Action is the address of the form.
func (f subscriptionForm) Action() string {
	if f.New {
		return "/new/subscription"
	}
	return subscriptionURL(f.Name) + "/edit"
}

func (p pages) editSubscription(r *http.Request) (page.Page, error) {
	if err := p.need(r, "put-subscription"); err != nil {
		return page.Page{}, err
	}
	name := r.PathValue("name")
	if name == "" {
		return p.subscriptionForm(r, subscriptionForm{New: true}), nil
	}
	b, err := p.API.Subscription(r.Context(), name)
	if err != nil {
		return page.Page{}, err
	}
	return p.subscriptionForm(r, subscriptionForm{
		Name: name, Target: b.Target, Types: joined(b.Filter.Types), Collections: joined(b.Filter.Collections),
		Actions: joined(b.Filter.Actions), States: joined(b.Filter.States), Seen: seenOf(b),
	}), nil
}

func (p pages) subscriptionForm(r *http.Request, f subscriptionForm) page.Page {
	title := p.Texts(r).T("New subscription")
	if !f.New {
		title = p.Texts(r).T("Edit the subscription") + ": " + f.Name
	}
	return page.Page{Name: "subscriptionform", Title: title, Section: "subscriptions", Content: f}
}

// saveSubscription creates or changes a subscription.
func (p pages) saveSubscription(r *http.Request) (string, *page.Page, error) {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	f := subscriptionForm{
		Name: r.PathValue("name"), Target: field("target"), Types: field("types"), Collections: field("collections"), Actions: field("actions"), States: field("states"),
		FromStart: field("from") == "start",
	}
	if f.Name == "" {
		f.Name, f.New = field("name"), true
	}
	request := wire.SubscriptionRequest{Target: f.Target, Filter: registry.FeedFilter{
		Types: words(f.Types), Collections: words(f.Collections), Actions: wordsOf[registry.Action](f.Actions), States: wordsOf[registry.State](f.States),
	}}
	if f.New {
		if f.FromStart {
			request.From = new(int64)
		}
		request.SigningKey = field("key")
		if f.Name == "" {
			return "", nil, page.Wrong("name", p.Texts(r).T("a subscription needs a name"))
		}
		if _, err := p.API.Subscription(r.Context(), f.Name); err == nil {
			return "", nil, page.Wrong("name", p.Texts(r).T("there is a subscription of this name; edit that one, or give another name"))
		}
	}
	if !f.New {
		now, err := p.API.Subscription(r.Context(), f.Name) // a save must not make it anew, without its key
		if err != nil {
			return "", nil, err
		}
		if seen := field("seen"); seen != "" && seen != seenOf(now) {
			return "", nil, page.Told(http.StatusConflict, wire.CodeConflict, p.Texts(r).T("somebody has changed the subscription since this form was shown, perhaps you in another tab: its receiver is now %s. Look at it in another tab; save again to replace it", now.Target))
		}
	}
	_, err := p.API.PutSubscription(r.Context(), f.Name, request)
	return subscriptionURL(f.Name), nil, err
}

// seenOf tells one content of a subscription from another.
func seenOf(b registry.Subscription) string {
	sum := sha256.Sum256([]byte(b.Target + "\n" + filterText(b.Filter)))
	return hex.EncodeToString(sum[:8])
}

// filterText is a filter on one line.
func filterText(f registry.FeedFilter) string {
	return strings.Join([]string{joined(f.Types), joined(f.Collections), joined(f.Actions), joined(f.States)}, "; ")
}

// joined is a list as people type it.
func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}

// wordsOf is the inverse of joined.
func wordsOf[T ~string](text string) (all []T) {
	for _, word := range words(text) {
		all = append(all, T(word))
	}
	return all
}

// subscriptionURL is the address of a subscription's page.
func subscriptionURL(name string) string { return "/subscriptions/" + url.PathEscape(name) }
