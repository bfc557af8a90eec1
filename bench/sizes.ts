/** Streams that are read at once. */
export const MOST_STREAMS = 50

/** How much is measured. */
export interface Sizes {
  readonly passes: number
  /** Tokens of the one stream that runs alone. */
  readonly tokensAlone: number
  /** Streams at once, and the tokens of each. */
  readonly crowd: number
  readonly tokensCrowd: number
  /** Requests whose first chunk is timed. */
  readonly requests: number
  /** Streams held in mid-answer. */
  readonly held: number
  /** Comparisons of a long turn, and of a long history, with a short one. */
  readonly repeats: number
  readonly longTurn: number
  readonly shortTurn: number
  /** Events in a long chat, and requests that are timed there; each makes it two events longer. */
  readonly history: number
  readonly historyRequests: number
  /** Clients that vanish, one after the other. */
  readonly vanishing: number
}

export const FULL: Sizes = {
  passes: 5,
  tokensAlone: 5_000,
  crowd: MOST_STREAMS,
  tokensCrowd: 500,
  requests: 60,
  held: 200,
  repeats: 5,
  longTurn: 20_000,
  shortTurn: 1_000,
  history: 1_000,
  historyRequests: 15,
  vanishing: 100,
}

/** For a first look: more noise, and shorter turns, in which the beginning and the end of a turn weigh more. */
export const QUICK: Sizes = {
  ...FULL,
  passes: 2,
  tokensAlone: 2_000,
  tokensCrowd: 150,
  requests: 20,
  held: 50,
  repeats: 1,
  vanishing: 20,
}

/** Enough for a new process to have compiled what it runs; the figures count for nothing. */
export function warmUp(sizes: Sizes): Sizes {
  return { ...sizes, tokensAlone: 3_000, tokensCrowd: 100, requests: 40, held: 10 }
}
