import type { RecordedRequests } from './recorded-requests.ts'

/** A chat of a stock client. */
export interface ConformChat {
  readonly requests: RecordedRequests
  /** The approvals that the client shows. */
  readonly pending: readonly string[]
  /** The calls that the client shows. */
  readonly calls: readonly string[]
  /** The calls that the client shows with a result of the tool. */
  readonly results: readonly string[]
  /** The agent's text since the last message of the person. */
  readonly text: string
  /** The error that the client shows. */
  readonly error: string | undefined
  /** Sends a message, and resolves when the client is idle. */
  send(text: string): Promise<void>
  /** Answers everything that waits, and resolves when the client is idle. */
  answer(approved: boolean): Promise<void>
  /** Stops the run that is being read. */
  stop(): void
  /** Returns the page of the chat where a person can write while something waits: this one, or another one that does not know. */
  writer(): ConformChat
  /** Returns a page that was loaded again: from the backend, if it has an address for that, or with the page's own copy. */
  reload(): Promise<ConformChat>
  /** Returns what is wrong with the streams up to now. */
  findFaults(): Promise<string[]>
}

export interface ChatOptions {
  readonly url: string
  /** An address that returns the conversation, with `{chat}`. */
  readonly historyUrl: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** A version of a client. */
export interface ConformClient {
  readonly name: string
  open(options: ChatOptions): ConformChat
}
