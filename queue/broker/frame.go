package broker

import (
	"encoding/binary"
	"fmt"
)

// The types of a frame from server to client. A frame is: size (4 bytes, of what follows), type (4
// bytes), data; all numbers are big-endian.
const (
	frameResponse uint32 = 0
	frameError    uint32 = 1
	frameMessage  uint32 = 2
)

const (
	responseOK        = "OK"
	responseCloseWait = "CLOSE_WAIT"
	responseHeartbeat = "_heartbeat_"
)

// The codes that begin the data of an error frame; they are nsqd's, since clients decide by them.
const (
	codeInvalid      = "E_INVALID"
	codeBadBody      = "E_BAD_BODY"
	codeBadTopic     = "E_BAD_TOPIC"
	codeBadChannel   = "E_BAD_CHANNEL"
	codeBadMessage   = "E_BAD_MESSAGE"
	codeBadProtocol  = "E_BAD_PROTOCOL"
	codeAuthDisabled = "E_AUTH_DISABLED"
	codeAuthFirst    = "E_AUTH_FIRST"
	codeAuthFailed   = "E_AUTH_FAILED"
	codePubFailed    = "E_PUB_FAILED"
	codeSubFailed    = "E_SUB_FAILED"

	codeManyPubFailed = "E_MPUB_FAILED"
	codeFinFailed     = "E_FIN_FAILED"
	codeReqFailed     = "E_REQ_FAILED"
	codeTouchFailed   = "E_TOUCH_FAILED"
)

// commandError is the answer to a command that was refused.
type commandError struct {
	code   string
	reason string
	fatal  bool // the connection is closed after it, as nsqd does
}

// Error is the text of the error frame.
func (e *commandError) Error() string { return e.code + " " + e.reason }

// refuse is an error after which the connection is closed: what follows on it cannot be trusted to
// be a command.
func refuse(code, format string, args ...any) *commandError {
	return &commandError{code: code, reason: fmt.Sprintf(format, args...), fatal: true}
}

// refuseFull is the answer to what there is no memory for. The connection stays: what was refused
// was read whole, and a client that connects anew would only send it again sooner.
func refuseFull(code, command string) *commandError {
	return &commandError{code: code, reason: command + " the broker holds as much as it may; send it again later"}
}

// appendFrame adds a response or error frame to buf.
func appendFrame(buf []byte, kind uint32, data string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(4+len(data)))
	buf = binary.BigEndian.AppendUint32(buf, kind)
	return append(buf, data...)
}

// appendMessage adds a message frame to buf: timestamp (8 bytes), attempts (2 bytes), id (16
// bytes), body.
func appendMessage(buf []byte, m *message) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(4+8+2+messageIDLength+len(m.body)))
	buf = binary.BigEndian.AppendUint32(buf, frameMessage)
	buf = binary.BigEndian.AppendUint64(buf, uint64(m.timestamp))
	buf = binary.BigEndian.AppendUint16(buf, m.attempts)
	buf = append(buf, m.id[:]...)
	return append(buf, m.body...)
}
