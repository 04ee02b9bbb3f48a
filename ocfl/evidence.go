package ocfl

// EvidenceFolder is the folder of an object with what is known of it beside its bytes: receipts and
// events. Package evidence knows what lies there.
const EvidenceFolder = extensionsFolder + "/holdfast-evidence"
