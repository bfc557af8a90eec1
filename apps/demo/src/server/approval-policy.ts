import type { ApprovalPolicy, PolicyCall } from 'adk-stream-protocol/server'
import { z } from 'zod'

import type { Wallets } from '../agent/wallet/wallets.ts'
import type { Languages } from './languages.ts'
import { describeReceipt, previewPayment } from './payment-preview.ts'
import type { Language } from '../demo-info.ts'

export interface ApprovalPolicyOptions {
  readonly wallets: Wallets
  readonly languages: Pick<Languages, 'of'>
  /** How long a person may take to decide, in ms. */
  readonly deadlineMs: number
}

/** Above this amount, a payment has high severity, and a second person must approve. */
export const ONE_PERSON_UP_TO = 500

/** The largest sum of payments that a person can grant at once. */
const GRANT_UP_TO = 200

/** The role of the second approver of large payments. */
export const APPROVER_ROLE = 'approver'

/** Creates the approval policy: the hint, the deadline and the approvers of each tool. */
export function createApprovalPolicy(options: ApprovalPolicyOptions): ApprovalPolicy {
  const { wallets, languages, deadlineMs } = options
  return {
    process_payment: ({ args, chat: { principalId } }) => {
      const { amount } = PaymentArguments.parse(args)
      const labels = LABELS[languages.of(principalId)]
      const owner = { principals: [principalId] }
      const preview = async (shown: unknown, reader: string, earlier: readonly PolicyCall[] = []) =>
        previewPayment(shown, await wallets.balance(principalId), {
          language: languages.of(reader, principalId),
          isOwner: reader === principalId,
          aloneUpTo: ONE_PERSON_UP_TO,
          earlier: earlier
            .filter(({ toolName }) => toolName === 'process_payment')
            .map(({ args: before }) => before),
        })
      return {
        title: labels.payment,
        hint: labels.paymentHint,
        severity: amount > ONE_PERSON_UP_TO ? 'high' : 'medium',
        preview: (shown, { reader }) => preview(shown, reader),
        previewInPlan: (shown, { reader, earlier }) => preview(shown, reader, earlier),
        receipt: (output, { args: ran, reader }) =>
          describeReceipt(ran, output, { language: languages.of(reader, principalId) }),
        icon: 'payment',
        // The second approver needs to know why the payment is requested.
        showUserText: true,
        deadlineMs,
        chain: amount > ONE_PERSON_UP_TO ? [owner, { roles: [APPROVER_ROLE] }] : [owner],
        // Small payments can be granted: up to 200 dollars in all to the same person, or all of a plan.
        ...(amount <= ONE_PERSON_UP_TO && {
          grants: [
            { free: ['description'], budget: { argument: 'amount', max: GRANT_UP_TO }, maxUses: 5 },
            { effect: 'deny' as const },
          ],
          plans: true,
        }),
        // The wallet pays once per call, however often the tool runs.
        idempotent: true,
      }
    },
    get_location: ({ chat: { principalId } }) => {
      const labels = LABELS[languages.of(principalId)]
      const { location: title, locationHint: hint } = labels
      // "Yes" in the chat is enough: the browser asks as well.
      return { title, hint, severity: 'low', icon: 'location', acceptReplies: true, deadlineMs }
    },
    propose_plan: ({ chat: { principalId } }) => {
      const { plan: title, planHint: hint } = LABELS[languages.of(principalId)]
      return { title, hint, icon: 'payment', deadlineMs }
    },
    // Requests its confirmation itself.
    book_trip: false,
    // The tools of MCP servers, which are not known before the servers run. The demo trusts the annotations of its own server.
    '*': ({ server, annotations, chat: { principalId } }) => {
      if (server === undefined || !annotations.destructiveHint) return false
      const { destructive: title, destructiveHint: hint } = LABELS[languages.of(principalId)]
      return { title, hint, severity: 'medium', deadlineMs }
    },
  }
}

// The model may send anything. A call with invalid arguments still needs approval, and the tool rejects it.
const PaymentArguments = z.object({ amount: z.number().catch(0) })

const LABELS = {
  en: {
    payment: 'Payment',
    paymentHint: 'Payments cannot be undone.',
    plan: 'Plan',
    planHint: 'Each of these calls then runs once, without asking again.',
    location: 'Location',
    locationHint: 'Your browser may also ask. Your coordinates are sent to the model.',
    destructive: 'Notebook',
    destructiveHint: 'Deleted notes cannot be restored.',
  },
  ja: {
    payment: '送金',
    paymentHint: '送金は取り消せません。',
    plan: '計画',
    planHint: 'それぞれの操作が、確認なしで1回だけ実行されます。',
    location: '現在地',
    locationHint:
      'ブラウザーからも確認を求められることがあります。位置情報はモデルに送信されます。',
    destructive: 'メモ帳',
    destructiveHint: '削除したメモは元に戻せません。',
  },
} as const satisfies Record<Language, unknown>
