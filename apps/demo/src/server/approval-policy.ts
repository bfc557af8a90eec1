import type { ApprovalPolicy } from 'adk-stream-protocol/server'
import { z } from 'zod'

import { fromCents, toCents } from '../agent/wallet/money.ts'
import type { Wallets } from '../agent/wallet/wallets.ts'
import type { Language, Languages } from './languages.ts'

export interface ApprovalPolicyOptions {
  readonly wallets: Wallets
  readonly languages: Pick<Languages, 'of'>
  /** How long a person may take to decide, in ms. */
  readonly deadlineMs: number
}

/** From this amount on, a payment has high severity. */
const HIGH_FROM = 100
/** Above this amount, a second person must approve. */
export const ONE_PERSON_UP_TO = 500

/** The role of the second approver of large payments. */
export const APPROVER_ROLE = 'approver'

/** Creates the approval policy: the hint, the deadline and the approvers of each tool. */
export function createApprovalPolicy(options: ApprovalPolicyOptions): ApprovalPolicy {
  const { wallets, languages, deadlineMs } = options
  return {
    process_payment: async ({ args, chat: { principalId } }) => {
      const { amount } = PaymentArguments.parse(args)
      const labels = LABELS[languages.of(principalId)]
      const balance = await wallets.balance(principalId)
      const owner = { principals: [principalId] }
      return {
        title: labels.payment,
        hint:
          (toCents(amount) ?? 0) > balance
            ? labels.notEnough(fromCents(balance))
            : labels.balance(fromCents(balance)),
        severity: amount >= HIGH_FROM ? 'high' : 'medium',
        icon: 'payment',
        deadlineMs,
        chain: amount > ONE_PERSON_UP_TO ? [owner, { roles: [APPROVER_ROLE] }] : [owner],
        // The wallet pays once per call, however often the tool runs.
        idempotent: true,
      }
    },
    get_location: ({ chat: { principalId } }) => {
      const labels = LABELS[languages.of(principalId)]
      const { location: title, locationHint: hint } = labels
      return { title, hint, severity: 'low', icon: 'location', deadlineMs }
    },
  }
}

// The model may send anything. A call with invalid arguments still needs approval, and the tool rejects it.
const PaymentArguments = z.object({ amount: z.number().catch(0) })

const LABELS = {
  en: {
    payment: 'Payment',
    balance: (dollars: number) =>
      `Your wallet holds ${dollars} USD. A payment cannot be taken back.`,
    notEnough: (dollars: number) =>
      `Your wallet holds only ${dollars} USD: the payment would be refused.`,
    location: 'Location',
    locationHint: 'Your browser may ask you once more. The position goes to the model.',
  },
  ja: {
    payment: '送金',
    balance: (dollars: number) => `現在の残高は ${dollars} USD です。送金は取り消せません。`,
    notEnough: (dollars: number) => `残高が ${dollars} USD しかないため、送金できません。`,
    location: '現在地',
    locationHint: 'ブラウザからも確認を求められることがあります。位置はモデルに送られます。',
  },
} as const satisfies Record<Language, unknown>
