import type { BaseTool } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { z } from 'zod'

interface Payment {
  readonly amount: number
  readonly recipient: string
}

/** Money that really goes down, and a record of everything that took some of it. */
export class Wallet {
  readonly payments: Payment[] = []
  #balance = 1_000

  get balance(): number {
    return this.#balance
  }

  pay(payment: Payment): number {
    this.payments.push(payment)
    this.#balance -= payment.amount
    return this.#balance
  }
}

const Arguments = z.object({
  amount: z.number().positive(),
  recipient: z.string().min(1),
  currency: z.enum(['USD', 'JPY']).default('USD'),
})

interface PaymentOptions {
  /** Default true. */
  readonly gated?: boolean
  /** Called with every payment before money moves; may wait, may throw. */
  readonly before?: () => void | Promise<void>
}

/** The tool that everything here is about. */
export function paymentTool(
  wallet: Wallet,
  { gated = true, before = () => undefined }: PaymentOptions = {},
): BaseTool {
  return new FunctionTool({
    name: 'process_payment',
    description: 'Pays somebody.',
    parameters: Arguments,
    requireConfirmation: gated,
    execute: async ({ amount, recipient, currency }) => {
      await before()
      return {
        success: true,
        amount,
        recipient,
        currency,
        balance: wallet.pay({ amount, recipient }),
      }
    },
  })
}

/** The script of a model that calls the tool. */
export function callPayment(amount: number, recipient = '花子'): string {
  return `[[call process_payment ${JSON.stringify({ amount, recipient })}]]`
}
