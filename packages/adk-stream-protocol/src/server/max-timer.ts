/** The longest delay of a Node.js timer, in ms. A timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2_147_483_647
