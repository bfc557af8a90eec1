import { isArrayOf, isNumber, isObjectOf, isOneOf, isString, optional } from './guards.ts'

/** A notice about an approval, in `GET /approvals/:id/notices`. */
export interface ShownNotice {
  /** What it said, such as `approval.requested`. */
  readonly type: string
  readonly channel: string
  /** To whom in the channel. */
  readonly to?: string | undefined
  /** `ended`: not sent, because nobody needed to decide any more. */
  readonly state: 'waiting' | 'sent' | 'failed' | 'ended'
  /** When it was sent, or is due, in ms since 1970. */
  readonly at: number
  readonly attempts: number
}

/** The body of `GET /approvals/:id/notices`. */
export const isNoticeList = isObjectOf<{ readonly notices: readonly ShownNotice[] }>({
  notices: isArrayOf(
    isObjectOf<ShownNotice>({
      type: isString,
      channel: isString,
      to: optional(isString),
      state: isOneOf('waiting', 'sent', 'failed', 'ended'),
      at: isNumber,
      attempts: isNumber,
    }),
  ),
})
