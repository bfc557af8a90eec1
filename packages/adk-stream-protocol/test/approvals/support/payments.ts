import type { BaseTool } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { z } from 'zod'

interface Payment {
  readonly amount: number
  readonly recipient: string
}

/** A wallet whose balance decreases, with a record of its payments. */
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
  /** Called with every payment before it is made. May wait or throw. */
  readonly before?: () => void | Promise<void>
}

/** The payment tool. */
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
