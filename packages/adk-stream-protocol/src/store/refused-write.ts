import { StoreError } from './store-error.ts'

/** A part of a transaction is not possible. Thrown inside the transaction, which is then rolled back, and not repeated. */
export class RefusedWrite extends StoreError {
  constructor() {
    super('invalid', 'A part of the transaction is not possible. Nothing was stored.')
  }
}

/** Runs a transaction. Returns `refused` if a part of it is not possible. */
export async function orRefused<Result, Refused>(
  refused: Refused,
  transaction: Promise<Result>,
): Promise<Result | Refused> {
  try {
    return await transaction
  } catch (error) {
    if (error instanceof RefusedWrite) return refused
    throw error
  }
}
