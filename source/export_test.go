package source

// ParseURL is what every http and https address passes, for the fuzzing of it.
var ParseURL = parseURL
