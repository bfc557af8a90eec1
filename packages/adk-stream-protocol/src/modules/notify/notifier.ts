import type { Approval } from '../../approvals/approval.ts'
import type { RefreshApproval } from '../../server/chats/host/policy-checks.ts'
import type { NoticeStore, StoredNotice } from '../../store/tables/notices.ts'
import type { Notice, NoticeChannel, NoticeResult } from './notice.ts'
import { addressesOf } from './stored-addresses.ts'
import { findOpenStep, NoticeError, readSummary } from './notice.ts'
import type { NoticeBody, PlanOptions } from './plan-notices.ts'
import { planNotices } from './plan-notices.ts'

export interface NotifierOptions extends PlanOptions {
  readonly worker: string
  readonly refresh: RefreshApproval
  /** For how long a process has a notice. If it ends meanwhile, another one sends it then. Default: 30 s. */
  readonly claimMs?: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** The delays between attempts: about three days in all. */
const RETRY_MS = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
]
/** How long an attempt may take. The claim lasts longer, so that no other process sends the notice meanwhile. */
const ATTEMPT_MS = 20_000
const CLAIM_MS = 30_000
/** How many notices a channel sends at the same time. */
const MAX_PER_CHANNEL = 4
/** How long the log of deliveries is kept. */
const KEEP_MS = 30 * 24 * HOUR_MS
const MAX_ANSWER = 500

/**
 * Plans and sends notices in the background. Every process of an application does this; each notice is claimed by one of them. A notice
 * whose process ended before it stored the result is sent again, with the same id.
 */
export class Notifier {
  readonly #options: NotifierOptions
  readonly #closed = new AbortController()
  readonly #sending = new Map<string, Set<Promise<void>>>()
  #running: Promise<void> | undefined
  #isAgainNeeded = false
  #removedAt = 0

  constructor(options: NotifierOptions) {
    this.#options = options
    this.wake()
  }

  /** Looks for new entries of the audit record and for notices that are due. Returns at once. */
  wake(): void {
    if (this.#closed.signal.aborted) return
    this.#isAgainNeeded = true
    this.#running ??= this.#run()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = undefined
      })
  }

  /** Stops. Notices that are being sent are aborted, and sent again later. */
  async close(): Promise<void> {
    this.#closed.abort()
    await this.#running
    await Promise.all([...this.#sending.values()].flatMap((sending) => [...sending]))
  }

  async #run(): Promise<void> {
    while (this.#isAgainNeeded && !this.#closed.signal.aborted) {
      this.#isAgainNeeded = false
      while (await planNotices(this.#options));
      await this.#claim()
    }
    await this.#removeOld()
  }

  /** Starts to send what is due, as far as each channel is free. */
  async #claim(): Promise<void> {
    const { store, ledger, channels, worker, claimMs = CLAIM_MS } = this.#options
    for (const [name, channel] of Object.entries(channels)) {
      const sending = this.#sending.get(name) ?? new Set()
      this.#sending.set(name, sending)
      const limit = MAX_PER_CHANNEL - sending.size
      if (limit === 0) continue
      const claim = { worker, channels: [name], claimMs, limit }
      for (const notice of await store.claim(ledger.appName, claim)) {
        const sent = this.#send(channel, notice)
          .catch(this.#options.onError)
          .finally(() => {
            sending.delete(sent)
            this.wake()
          })
        sending.add(sent)
      }
    }
  }

  async #send(channel: NoticeChannel, stored: StoredNotice): Promise<void> {
    const { store, ledger, worker } = this.#options
    const { appName } = ledger
    const settle = (settled: Omit<Parameters<NoticeStore['settle']>[1], 'id' | 'worker'>) =>
      store.settle(appName, { id: stored.id, worker, ...settled })
    const approval = await ledger.get(stored.approvalId)
    // The bridge wrote it.
    const body = JSON.parse(stored.body) as NoticeBody
    if (!approval || isOutdated(body, approval)) return settle({ state: 'ended' })
    const { step: _step, later: _later, ...shown } = body
    const summary = await readSummary(this.#options.refresh, approval, body.step)
    const notice = { id: stored.id, ...shown, approval: summary }
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(ATTEMPT_MS)])
    try {
      const result = await this.#attempt(channel, { notice, stored, signal })
      const answer = result?.answer?.slice(0, MAX_ANSWER)
      const { reference } = result ?? {}
      if (result?.gone) {
        const reason = answer ?? 'The receiver wants no further notices.'
        const address = channel.address ?? ''
        await store.disable(appName, { channel: stored.channel, address, reason })
        const message = `The channel ${stored.channel} of notify is not used any more: ${reason}`
        this.#options.onError(new NoticeError(message))
        return
      }
      await settle({
        state: result?.unsent ? 'ended' : 'sent',
        ...(answer !== undefined && { answer }),
        ...(reference !== undefined && { reference }),
      })
    } catch (error) {
      await this.#failed(stored, error, settle)
    }
  }

  async #attempt(
    channel: NoticeChannel,
    attempt: {
      readonly notice: Notice
      readonly stored: StoredNotice
      readonly signal: AbortSignal
    },
  ): Promise<NoticeResult | void> {
    const { store, ledger, records } = this.#options
    const { notice, stored, signal } = attempt
    const at = await ledger.now()
    const log = await store.list(ledger.appName, stored.approvalId)
    const reference = log.findLast(
      (earlier) => earlier.channel === stored.channel && earlier.reference !== undefined,
    )?.reference
    // A channel may throw before it returns a promise, and may ignore the signal.
    const send = async (): Promise<NoticeResult | void> =>
      channel.send(notice, {
        number: stored.attempts,
        at,
        signal,
        ...(reference !== undefined && { reference }),
        ...(channel.addresses &&
          records && { addresses: addressesOf(records, ledger.appName, stored.channel) }),
      })
    const late = new Promise<never>((_resolve, reject) => {
      const refuse = (): void => reject(new NoticeError('The channel has not answered in time.'))
      signal.addEventListener('abort', refuse, { once: true })
    })
    return Promise.race([send(), late])
  }

  async #failed(
    { attempts, channel, approvalId }: StoredNotice,
    error: unknown,
    settle: (
      settled: Pick<Parameters<NoticeStore['settle']>[1], 'state' | 'retryMs' | 'answer'>,
    ) => Promise<void>,
  ): Promise<void> {
    const answer = String(error instanceof Error ? error.message : error).slice(0, MAX_ANSWER)
    const retryMs = this.#closed.signal.aborted ? 0 : RETRY_MS[attempts - 1]
    if (retryMs !== undefined) {
      const asked = error instanceof NoticeError ? error.retryMs : undefined
      const wait = asked === undefined ? retryMs * (0.9 + Math.random() * 0.2) : asked
      return settle({ state: 'waiting', retryMs: Math.min(wait, 24 * HOUR_MS), answer })
    }
    await settle({ state: 'failed', answer })
    const message = `A notice of the approval ${approvalId} did not reach the channel ${channel} in ${attempts} attempts.`
    this.#options.onError(new NoticeError(message, { cause: error }))
  }

  async #removeOld(): Promise<void> {
    if (Date.now() - this.#removedAt < HOUR_MS) return
    this.#removedAt = Date.now()
    await this.#options.store.removeOld(KEEP_MS)
    await this.#options.records?.removeOld()
  }
}

/** Whether a notice asks, some time after a step has begun, for a decision that is not needed any more. */
function isOutdated({ later, step }: NoticeBody, approval: Approval): boolean {
  return later === true && step !== findOpenStep(approval)
}
