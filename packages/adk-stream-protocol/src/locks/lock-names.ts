/**
 * Appended to the name of an app in the lock of the run that stays open in a chat, which is a live session. A chat can have this lock and the
 * lock of a turn at the same time.
 */
export const OPEN_RUN_LOCK = '#live'
