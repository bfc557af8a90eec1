import type { ApprovalPolicy } from 'adk-stream-protocol/server'
import { z } from 'zod'

import { fromCents, toCents } from '../agent/wallet/money.ts'
import type { Wallets } from '../agent/wallet/wallets.ts'

export interface ApprovalPolicyOptions {
  readonly wallets: Wallets
  /** How long a person may take to decide, in ms. */
  readonly deadlineMs: number
}

/** From this amount on, a payment is shown as a grave one. */
const HIGH_FROM = 100
/** Beyond this amount, a second person has to agree. */
const ONE_PERSON_UP_TO = 500

/** Whoever holds this role is the second person for large payments. */
export const APPROVER_ROLE = 'approver'

/** What people are told before they decide, how long they have, and who is asked. */
export function createApprovalPolicy(options: ApprovalPolicyOptions): ApprovalPolicy {
  const { wallets, deadlineMs } = options
  return {
    process_payment: ({ args, chat }) => {
      const { amount, recipient, description } = PaymentArguments.parse(args)
      const texts = isJapanese(recipient + description) ? JAPANESE : ENGLISH
      const left = balanceAfter(wallets.balance(chat.principalId), amount)
      const owner = { principals: [chat.principalId] }
      return {
        title: texts.title,
        hint: left === undefined ? texts.notEnough : texts.left(left),
        severity: amount >= HIGH_FROM ? 'high' : 'medium',
        icon: 'payment',
        deadlineMs,
        chain: amount > ONE_PERSON_UP_TO ? [owner, { roles: [APPROVER_ROLE] }] : [owner],
        // The wallet pays once per call, however often it is asked.
        idempotent: true,
      }
    },
    get_location: { severity: 'low', icon: 'location', deadlineMs },
  }
}

// The model may send anything. A call that does not fit is still asked about, and refused by the tool when it runs.
const PaymentArguments = z.object({
  amount: z.number().catch(0),
  recipient: z.string().catch(''),
  description: z.string().catch(''),
})

const ENGLISH = {
  title: 'Payment',
  left: (dollars: number) =>
    `It leaves ${dollars} USD in your wallet. A payment cannot be taken back.`,
  notEnough: 'Your wallet does not hold enough for it.',
}
const JAPANESE: typeof ENGLISH = {
  title: '送金',
  left: (dollars) => `送金後の残高は ${dollars} USD です。送金は取り消せません。`,
  notEnough: '残高が足りません。',
}

/** The server does not know the reader's language, but it knows the words they used for the payment. */
function isJapanese(text: string): boolean {
  return /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u.test(text)
}

function balanceAfter(balance: ReturnType<Wallets['balance']>, amount: number): number | undefined {
  const cents = toCents(amount)
  if (cents === undefined) return fromCents(balance)
  return cents > balance ? undefined : (balance - cents) / 100
}
