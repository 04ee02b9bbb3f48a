package broker

import (
	"bytes"
	"crypto/subtle"
	"io"
	"strconv"
)

// execute runs one command line. It returns the data of the response frame, or "" for none. A
// *commandError is sent to the client; any other error means that the connection broke.
func (c *conn) execute(line []byte) (string, error) {
	name, rest, more := bytes.Cut(line, []byte(" "))
	var args []string
	if more {
		for arg := range bytes.SplitSeq(rest, []byte(" ")) {
			args = append(args, string(arg))
		}
	}
	switch string(name) {
	case "FIN":
		return "", c.finish(args)
	case "REQ":
		return "", c.requeue(args)
	case "TOUCH":
		return "", c.touch(args)
	case "RDY":
		return "", c.ready(args)
	case "NOP":
		return "", nil
	case "PUB":
		return c.publish(args)
	case "MPUB":
		return c.publishMany(args)
	case "DPUB":
		return c.publishDeferred(args)
	case "IDENTIFY":
		return c.identify()
	case "SUB":
		return c.subscribe(args)
	case "CLS":
		return c.startClose()
	case "AUTH":
		return c.authenticate()
	default:
		return "", refuse(codeInvalid, "invalid command %q", name)
	}
}

// authenticate reads the body of an AUTH. With the right secret, the client may publish and
// subscribe.
func (c *conn) authenticate() (string, error) {
	secret := c.broker.opts.AuthSecret
	if secret == "" {
		return "", refuse(codeAuthDisabled, "this server has no authentication")
	}
	size, err := c.readSize()
	if err != nil {
		return "", err
	}
	if size <= 0 || size > maxSecret {
		return "", refuse(codeBadBody, "AUTH invalid body size %d", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare(body, []byte(secret)) != 1 {
		c.broker.log.Warn("NSQ client refused: wrong secret", "client", c.client.remote)
		return "", refuse(codeAuthFailed, "AUTH wrong secret")
	}
	c.authenticated.Store(true)
	return `{"identity":"holdfast","identity_url":"","permission_count":1}`, nil
}

// requireAuth refuses a client that has not authenticated, if the broker has a secret.
func (c *conn) requireAuth(command string) error {
	if c.unauthenticated() {
		return refuse(codeAuthFirst, "AUTH required before %s", command)
	}
	return nil
}

func (c *conn) subscribe(args []string) (string, error) {
	if err := c.requireAuth("SUB"); err != nil {
		return "", err
	}
	if c.state != stateInit {
		return "", refuse(codeInvalid, "cannot SUB in current state")
	}
	if c.heartbeat.Load() <= 0 {
		return "", refuse(codeInvalid, "cannot SUB with heartbeats disabled")
	}
	if len(args) < 2 {
		return "", refuse(codeInvalid, "SUB insufficient number of parameters")
	}
	if !validName(args[0]) {
		return "", refuse(codeBadTopic, "SUB topic name %q is not valid", args[0])
	}
	if !validName(args[1]) {
		return "", refuse(codeBadChannel, "SUB channel name %q is not valid", args[1])
	}
	if !c.broker.hub.subscribe(c.client, args[0], args[1]) {
		return "", refuseFull(codeSubFailed, "SUB")
	}
	c.state = stateSubscribed
	return responseOK, nil
}

func (c *conn) startClose() (string, error) {
	if c.state != stateSubscribed {
		return "", refuse(codeInvalid, "cannot CLS in current state")
	}
	c.broker.hub.startClose(c.client)
	c.state = stateClosing
	return responseCloseWait, nil
}

func (c *conn) ready(args []string) error {
	switch c.state {
	case stateClosing:
		return nil // sent before the client's CLS
	case stateInit:
		return refuse(codeInvalid, "cannot RDY in current state")
	}
	n := int64(1)
	if len(args) > 0 {
		var err error
		if n, err = strconv.ParseInt(args[0], 10, 64); err != nil {
			return refuse(codeInvalid, "RDY could not parse count %q", args[0])
		}
	}
	if n < 0 || n > c.broker.opts.MaxRdyCount {
		return refuse(codeInvalid, "RDY count %d out of range 0-%d", n, c.broker.opts.MaxRdyCount)
	}
	c.broker.hub.setReady(c.client, n)
	return nil
}

func (c *conn) finish(args []string) error {
	id, err := c.heldID("FIN", args, 1)
	if err != nil {
		return err
	}
	if err := c.broker.hub.finish(c.client, id); err != nil {
		return &commandError{code: codeFinFailed, reason: "FIN " + err.Error()}
	}
	return nil
}

func (c *conn) requeue(args []string) error {
	id, err := c.heldID("REQ", args, 2)
	if err != nil {
		return err
	}
	delay, err := parseMillis("REQ", args[1])
	if err != nil {
		return err
	}
	delay = min(max(delay, 0), c.broker.opts.MaxReqTimeout)
	if err := c.broker.hub.requeue(c.client, id, delay); err != nil {
		return &commandError{code: codeReqFailed, reason: "REQ " + err.Error()}
	}
	return nil
}

func (c *conn) touch(args []string) error {
	id, err := c.heldID("TOUCH", args, 1)
	if err != nil {
		return err
	}
	if err := c.broker.hub.touch(c.client, id); err != nil {
		return &commandError{code: codeTouchFailed, reason: "TOUCH " + err.Error()}
	}
	return nil
}

// heldID returns the message id of a command that answers a delivery.
func (c *conn) heldID(command string, args []string, want int) (id messageID, err error) {
	if c.state == stateInit {
		return id, refuse(codeInvalid, "cannot %s in current state", command)
	}
	if len(args) < want {
		return id, refuse(codeInvalid, "%s insufficient number of params", command)
	}
	if len(args[0]) != messageIDLength {
		return id, refuse(codeInvalid, "%s invalid message ID", command)
	}
	copy(id[:], args[0])
	return id, nil
}
