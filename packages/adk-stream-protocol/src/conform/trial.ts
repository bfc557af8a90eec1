import type { ChatOptions, ConformChat, ConformClient } from './conform-chat.ts'
import type { ExecutionCounter } from './execution-counter.ts'

/** What the checks need to know about a backend. */
export interface Backend extends ChatOptions {
  /** A message that makes the agent call one tool that needs approval. */
  readonly prompt: string
  /** A message that the agent answers with text. */
  readonly plainPrompt: string
  /** A message that makes the run fail. */
  readonly errorPrompt: string | undefined
  /** The headers of another person. */
  readonly strangerHeaders: Readonly<Record<string, string>> | undefined
  readonly counter: ExecutionCounter
  /** How long to wait for an execution that must not happen. */
  readonly settleMs: number
}

/** Why a backend does not pass a check. */
export class Failure extends Error {
  override readonly name = 'Failure'
}

/** Why a check cannot be made. */
export class Skipped extends Error {
  override readonly name = 'Skipped'
}

/** A chat of its own for one check, with the key by which its executions are counted. */
export class Trial {
  readonly key = crypto.randomUUID().slice(0, 8)
  readonly chat: ConformChat
  readonly backend: Backend

  constructor(client: ConformClient, backend: Backend) {
    this.backend = backend
    this.chat = client.open(backend)
  }

  /** Sends the prompt. The tool must wait for an approval. */
  async ask(): Promise<void> {
    const { counter, prompt } = this.backend
    await this.chat.send(counter.fill(prompt, this.key))
    if (this.chat.error !== undefined) throw new Failure(`The prompt failed: ${this.chat.error}`)
    await this.expectExecutions(0, 'before anybody had approved')
    if (this.chat.pending.length !== 1)
      throw new Failure(
        `The client shows ${this.chat.pending.length} approvals after the prompt. Does --prompt make the agent call one tool that needs approval?`,
      )
  }

  /** Returns the request with which the client would approve, without sending it. */
  async prepareApproval(): Promise<string> {
    const page = await this.chat.reload()
    page.requests.holdNext = true
    await page.answer(true)
    const { last } = page.requests
    if (!last) throw new Failure('The client sends nothing when a person approves.')
    this.chat.requests.last = last
    return last.body
  }

  async expectExecutions(expected: number, when: string, key = this.key): Promise<void> {
    const { settleMs } = this.backend
    // An execution may take a moment, and a second one too.
    for (let waited = 0; waited < SLOW_MS; waited += POLL_MS) {
      if (((await this.#count(key)) ?? expected) >= expected) break
      await pause(POLL_MS)
    }
    if (this.isCounted) await pause(settleMs)
    const count = (await this.#count(key)) ?? this.chat.results.length
    if (count !== expected)
      throw new Failure(`The tool ran ${times(count)} ${when}, not ${times(expected)}.`)
  }

  /** Skips the check if executions can only be seen in the streams. */
  requireCounter(): void {
    if (!this.isCounted)
      throw new Skipped('needs --count or {counter}: the client does not see a second execution')
  }

  /** Sends a message, which must be answered. */
  async expectAnswer(when: string, chat = this.chat): Promise<void> {
    await chat.send(this.backend.plainPrompt)
    if (chat.error !== undefined)
      throw new Failure(`The message ${when} was not answered: ${chat.error}`)
    if (chat.text === '') throw new Failure(`The message ${when} was answered with no text.`)
  }

  expectNoError(when: string): void {
    const { error } = this.chat
    if (error !== undefined) throw new Failure(`The client shows an error ${when}: ${error}`)
  }

  get isCounted(): boolean {
    return !this.backend.counter.description.startsWith('the results')
  }

  #count(key: string): Promise<number | undefined> {
    return this.backend.counter.count(key)
  }
}

const SLOW_MS = 5_000
const POLL_MS = 50

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}
