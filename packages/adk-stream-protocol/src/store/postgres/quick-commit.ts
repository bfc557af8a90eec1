/**
 * The part of a statement that makes its commit not wait for the disk, for what need not survive a power failure. Another part of the
 * statement must select from `quick`, because PostgreSQL leaves out what is not used.
 */
export const QUICK = `quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`
