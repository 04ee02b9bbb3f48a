package node

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/signin"
	"github.com/holdfast/holdfast/webserver"
)

// Web is how a process that serves the API and the pages meets browsers. The zero value has defaults.
type Web struct {
	Lifetime registry.Lifetime // of sessions
	Proxies  webserver.Proxies // whose word about clients is believed
}

// SignInLink makes a link by which a browser signs in as the admin whose token [Up] has made, once, within signin.LinkGood.
func (n *Node) SignInLink(ctx context.Context) (string, error) {
	token, err := n.store.TokenByHash(ctx, signin.Hash(n.token))
	if err != nil {
		return "", err
	}
	path, _, err := signin.MakeLink(ctx, n.store, token.ID, time.Now())
	return n.url + path, err
}
