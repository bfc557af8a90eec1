import Database from 'libsql'
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

export interface SqliteWallets extends Wallets, Disposable {
  balance(userId: string): Cents
  pay(userId: string, payment: Payment): PaymentResult
}

/** Opens wallets in a SQLite file, or in memory with `:memory:`. */
export function openSqliteWallets(path: string): SqliteWallets {
  const database = new Database(path)
  // A reported payment must survive a power failure. Another process may lock the file for a moment.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;')
  database.exec(TABLES)
  const statements = prepare(database)

  const balance = (userId: string): Cents => {
    const row = statements.wallet.get(userId)
    return row === undefined ? OPENING_BALANCE : WalletRow.parse(row).balance_cents
  }
  return {
    balance,
    pay(userId, payment) {
      database.exec('BEGIN IMMEDIATE')
      try {
        const result = transfer({ statements, userId, payment, balance })
        database.exec('COMMIT')
        return result
      } catch (cause) {
        database.exec('ROLLBACK')
        throw cause
      }
    },
    [Symbol.dispose]: () => void database.close(),
  }
}

interface Transfer {
  readonly statements: Statements
  readonly userId: string
  readonly payment: Payment
  readonly balance: (userId: string) => Cents
}

/** Runs inside an exclusive write transaction. */
function transfer({ statements, userId, payment, balance }: Transfer): PaymentResult {
  const earlier = statements.payment.get(userId, payment.key)
  const before = balance(userId)
  if (earlier !== undefined) return repeatPayment(PaymentRow.parse(earlier), payment, before)
  if (payment.amount > before) return { state: 'insufficient-funds', balance: before }

  const after = Cents.parse(before - payment.amount)
  const transactionId = createTransactionId()
  const paidAt = new Date().toISOString()
  statements.setBalance.run(userId, after)
  statements.record.run(
    userId,
    payment.key,
    transactionId,
    payment.amount,
    payment.recipient,
    after,
    paidAt,
  )
  return { state: 'paid', transactionId, balance: after, paidAt }
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS wallets (
    user_id TEXT PRIMARY KEY,
    balance_cents INTEGER NOT NULL CHECK (balance_cents >= 0)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS payments (
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    recipient TEXT NOT NULL,
    balance_cents INTEGER NOT NULL,
    paid_at TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
  ) STRICT;
`

const WalletRow = z.object({ balance_cents: Cents })
const PaymentRow = z
  .object({
    transaction_id: z.string(),
    amount_cents: Cents,
    recipient: z.string(),
    balance_cents: Cents,
    paid_at: z.string(),
  })
  .transform((row) => ({
    transactionId: row.transaction_id,
    amount: row.amount_cents,
    recipient: row.recipient,
    balance: row.balance_cents,
    paidAt: row.paid_at,
  }))

type Statements = ReturnType<typeof prepare>

function prepare(database: InstanceType<typeof Database>) {
  return {
    wallet: database.prepare('SELECT balance_cents FROM wallets WHERE user_id = ?'),
    payment: database.prepare('SELECT * FROM payments WHERE user_id = ? AND key = ?'),
    setBalance: database.prepare(
      'INSERT INTO wallets VALUES (?, ?) ON CONFLICT (user_id) DO UPDATE SET balance_cents = excluded.balance_cents',
    ),
    record: database.prepare('INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?, ?)'),
  }
}
