package base

// RoomRemedy is what helps an item that has waited for room for too long.
const RoomRemedy = roomRemedy
