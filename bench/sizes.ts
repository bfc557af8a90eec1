/** The maximum number of concurrent streams. */
export const MOST_STREAMS = 50

/** How much is measured. */
export interface Sizes {
  readonly passes: number
  /** Tokens of the stream that runs alone. */
  readonly tokensAlone: number
  /** The number of concurrent streams, and the tokens of each. */
  readonly crowd: number
  readonly tokensCrowd: number
  /** Requests for which the time to the first chunk is measured. */
  readonly requests: number
  /** How many times the concurrent streams are requested at the same moment, for the time to their first chunks. */
  readonly crowds: number
  /** Streams that are paused during the reply. */
  readonly held: number
  /** Comparisons of a long turn, and of a long history, with a short one. */
  readonly repeats: number
  readonly longTurn: number
  readonly shortTurn: number
  /** Events in a long chat, and requests that are measured there. Each request adds two events. */
  readonly history: number
  readonly historyRequests: number
  /** Clients that disconnect, one after the other. */
  readonly disconnects: number
}

export const FULL: Sizes = {
  passes: 5,
  tokensAlone: 5_000,
  crowd: MOST_STREAMS,
  tokensCrowd: 500,
  requests: 60,
  crowds: 15,
  held: 200,
  repeats: 5,
  longTurn: 20_000,
  shortTurn: 1_000,
  history: 1_000,
  historyRequests: 15,
  disconnects: 100,
}

/** For a quick run: more noise, and shorter turns, in which the start and the end of a turn weigh more. */
export const QUICK: Sizes = {
  ...FULL,
  passes: 2,
  tokensAlone: 2_000,
  tokensCrowd: 150,
  requests: 20,
  crowds: 5,
  held: 50,
  repeats: 1,
  disconnects: 20,
}

/** Returns sizes for a warm-up pass, in which a new process compiles its code. The figures are discarded. */
export function warmUp(sizes: Sizes): Sizes {
  return { ...sizes, tokensAlone: 3_000, tokensCrowd: 100, requests: 2_000, held: 10 }
}
