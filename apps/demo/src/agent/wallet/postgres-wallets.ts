import type { Pool } from 'pg'
import { z } from 'zod'

import {
  Cents,
  createTransactionId,
  OPENING_BALANCE,
  type Payment,
  type PaymentResult,
  repeatPayment,
  type Wallets,
} from './wallets.ts'

export interface PostgresWallets extends Wallets {
  balance(userId: string): Promise<Cents>
  pay(userId: string, payment: Payment): Promise<PaymentResult>
}

/** Opens wallets in PostgreSQL, for several servers. Creates the tables if they do not exist. */
export async function openPostgresWallets(pool: Pool): Promise<PostgresWallets> {
  await createTables(pool)
  const balance = async (userId: string): Promise<Cents> => {
    const { rows } = await pool.query(
      'SELECT balance_cents AS balance FROM demo_wallets WHERE user_id = $1',
      [userId],
    )
    return rows[0] === undefined ? OPENING_BALANCE : WalletRow.parse(rows[0]).balance
  }
  return {
    balance,
    async pay(userId, payment) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        // Locks the wallet: payments of one user run one after the other, in all processes.
        await client.query('INSERT INTO demo_wallets VALUES ($1, $2) ON CONFLICT DO NOTHING', [
          userId,
          OPENING_BALANCE,
        ])
        const wallet = await client.query(
          'SELECT balance_cents AS balance FROM demo_wallets WHERE user_id = $1 FOR UPDATE',
          [userId],
        )
        const result = await transfer(client, {
          userId,
          payment,
          before: WalletRow.parse(wallet.rows[0]).balance,
        })
        await client.query('COMMIT')
        client.release()
        return result
      } catch (cause) {
        // Closes the connection, which rolls back. It may be broken.
        client.release(true)
        throw cause
      }
    },
  }
}

interface Transfer {
  readonly userId: string
  readonly payment: Payment
  readonly before: Cents
}

/** Runs while the wallet is locked. */
async function transfer(
  client: Pick<Pool, 'query'>,
  { userId, payment, before }: Transfer,
): Promise<PaymentResult> {
  const { key, amount, recipient } = payment
  const { rows } = await client.query(
    `SELECT transaction_id AS "transactionId", amount_cents AS amount, recipient, balance_cents AS balance, paid_at AS "paidAt"
       FROM demo_payments WHERE user_id = $1 AND key = $2`,
    [userId, key],
  )
  if (rows[0] !== undefined) return repeatPayment(PaymentRow.parse(rows[0]), payment, before)
  if (amount > before) return { state: 'insufficient-funds', balance: before }

  const balance = Cents.parse(before - amount)
  const transactionId = createTransactionId()
  const paidAt = new Date().toISOString()
  await client.query('UPDATE demo_wallets SET balance_cents = $2 WHERE user_id = $1', [
    userId,
    balance,
  ])
  await client.query('INSERT INTO demo_payments VALUES ($1, $2, $3, $4, $5, $6, $7)', [
    userId,
    key,
    transactionId,
    amount,
    recipient,
    balance,
    paidAt,
  ])
  return { state: 'paid', transactionId, balance, paidAt }
}

/** Creates the tables under a lock: `CREATE TABLE IF NOT EXISTS` fails if two processes run it at once. */
async function createTables(pool: Pool): Promise<void> {
  await pool.query(`
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('demo_wallets'));
    CREATE TABLE IF NOT EXISTS demo_wallets (
      user_id text PRIMARY KEY,
      balance_cents integer NOT NULL CHECK (balance_cents >= 0)
    );
    CREATE TABLE IF NOT EXISTS demo_payments (
      user_id text NOT NULL,
      key text NOT NULL,
      transaction_id text NOT NULL,
      amount_cents integer NOT NULL CHECK (amount_cents > 0),
      recipient text NOT NULL,
      balance_cents integer NOT NULL,
      paid_at text NOT NULL,
      PRIMARY KEY (user_id, key)
    );
    COMMIT;
  `)
}

const WalletRow = z.object({ balance: Cents })
const PaymentRow = z.object({
  transactionId: z.string(),
  amount: Cents,
  recipient: z.string(),
  balance: Cents,
  paidAt: z.string(),
})
