import { FunctionTool } from '@google/adk'
import { z } from 'zod'

import { fromCents, toCents, type Wallets } from '../wallet/wallets.ts'

export const PaymentRequest = z
  .object({
    // The limits are for the form that edits the amount. A call of the model that exceeds them gets a result that says why.
    amount: z
      .number()
      .meta({ minimum: 0.01 })
      .describe('How much to send, in dollars: positive, at most two decimals.'),
    recipient: z
      .string()
      .min(1)
      .max(200)
      .regex(/[\p{L}\p{N}]/u, 'Name the recipient.')
      .describe('Who gets the money, as the user named them.'),
    currency: z
      .string()
      .default('USD')
      .meta({ enum: ['USD'] })
      .describe('ISO code of the currency; the wallet holds USD.'),
    description: z.string().max(500).default('').describe('What the payment is for.'),
  })
  .describe("Sends money from the user's wallet to a recipient.")
export type PaymentRequest = z.infer<typeof PaymentRequest>

/** Sends money from the user's wallet. Runs on the server and needs approval. */
export function createProcessPayment(wallets: Wallets) {
  return new FunctionTool({
    name: 'process_payment',
    description: PaymentRequest.description ?? '',
    parameters: PaymentRequest,
    requireConfirmation: true,
    execute: (request, context) => {
      if (!context) return refuse('A payment needs a user. Run this tool in an ADK session.')
      const { userId, sessionId, functionCallId } = context
      if (functionCallId === undefined) return refuse('The payment has no call id.')
      return pay(wallets, request, { userId, key: `${sessionId}/${functionCallId}` })
    },
  })
}

/** Pays from a user's wallet, once per key. */
export async function pay(
  wallets: Wallets,
  request: PaymentRequest,
  { userId, key }: { readonly userId: string; readonly key: string },
) {
  const { amount, recipient, description } = request
  const currency = request.currency.trim().toUpperCase()
  const refusal = async (error: string) => ({
    ...refuse(error),
    wallet_balance: fromCents(await wallets.balance(userId)),
  })
  if (currency !== 'USD') return refusal(`The wallet holds USD, ${currency} cannot be sent.`)
  const cents = toCents(amount)
  if (cents === undefined) {
    return refusal(`Invalid amount: ${amount}. Send a positive amount with at most two decimals.`)
  }
  const result = await wallets.pay(userId, { key, amount: cents, recipient })
  switch (result.state) {
    case 'paid':
      return {
        success: true,
        transaction_id: result.transactionId,
        amount,
        currency,
        recipient,
        description,
        wallet_balance: fromCents(result.balance),
        timestamp: result.paidAt,
      }
    case 'insufficient-funds':
      return refusal(
        `Insufficient funds. Balance: ${fromCents(result.balance)} USD, requested: ${amount} USD.`,
      )
    case 'key-reused':
      return refusal('This call was already used for another payment.')
  }
}

/** Returns the result of a payment that was not made. */
export function refuse(error: string) {
  return { success: false, error, transaction_id: null }
}
