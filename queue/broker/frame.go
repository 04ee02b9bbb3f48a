package broker

import (
	"encoding/binary"
	"fmt"
)

// Frame types from server to client. A frame is: size (4 bytes, of what follows), type (4 bytes),
// data. All numbers are big-endian.
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

// Codes at the start of an error frame's data. They are nsqd's, since clients decide by them.
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

// commandError is the answer to a refused command.
type commandError struct {
	code   string
	reason string
	fatal  bool // the connection is closed afterwards, as nsqd does
}

// Error is the text of the error frame.
func (e *commandError) Error() string { return e.code + " " + e.reason }

// refuse returns an error that closes the connection: the bytes that follow may not be a command.
func refuse(code, format string, args ...any) *commandError {
	return &commandError{code: code, reason: fmt.Sprintf(format, args...), fatal: true}
}

// refuseFull returns the answer if there is no memory for a command. The connection stays open: the
// command was read completely, and a client that reconnects would only repeat it sooner.
func refuseFull(code, command string) *commandError {
	return &commandError{code: code, reason: command + " the broker's memory is full; send it again later"}
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
