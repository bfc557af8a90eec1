import type { Approval, ApprovalStep, Refusal } from '../../../src/approvals/approval.ts'
import {
  executive,
  executiveStep,
  hanako,
  manager,
  managerStep,
  otherManager,
  ownerStep,
  stranger,
} from './fixture.ts'

/** An action of an instance or of the environment. */
export type Action =
  | { readonly act: 'request'; readonly call: number }
  | {
      readonly act: 'decide'
      readonly call: number
      /** A name, or the n-th of the eligible people. */
      readonly who: Person | number
      readonly approved: boolean
      /** Whether the arguments are edited. For a sign-in: whether the server has the credential of the person. */
      readonly edited: boolean
      /** The instance runs the call if this decision completes its approval. Default false. */
      readonly claims?: boolean
    }
  | { readonly act: 'withdraw'; readonly call: number; readonly who: Person | number }
  | { readonly act: 'run'; readonly call: number; readonly as: number; readonly fails: boolean }
  | { readonly act: 'cancel'; readonly call: number }
  | { readonly act: 'expire' | 'recover' | 'beat' }
  | { readonly act: 'rewrite'; readonly call: number }
  | { readonly act: 'wait'; readonly ms: number }
  /** Sets the wall clock. No time passes. */
  | { readonly act: 'jump'; readonly ms: number }
  /** Lets the other lanes run first, this many times. */
  | { readonly act: 'pause'; readonly turns: number }
  | { readonly act: 'crash'; readonly instance: number }

export interface Program {
  readonly plans: readonly CallPlan[]
  readonly opening: readonly Action[]
  readonly lanes: readonly (readonly Action[])[]
  readonly chaos: readonly Action[]
}

export const people = { hanako, manager, otherManager, executive, stranger }
export type Person = keyof typeof people

/** The terms of the calls. They repeat who may decide in plain form, for the checker. */
export const rules = {
  owner: { chain: [ownerStep], deciders: [['hanako']] },
  'two managers': {
    chain: [{ ...managerStep, count: 2 }],
    deciders: [
      ['manager', 'otherManager'],
      ['manager', 'otherManager'],
    ],
  },
  'manager, then executive': {
    chain: [managerStep, executiveStep],
    deciders: [['manager', 'otherManager'], ['executive']],
  },
} as const satisfies Record<
  string,
  { chain: readonly ApprovalStep[]; deciders: readonly (readonly Person[])[] }
>

export interface CallPlan {
  readonly rule: keyof typeof rules
  readonly chat: number
  readonly idempotent: boolean
  /** What the person is asked for. Default: to approve the call. */
  readonly kind?: 'input' | 'sign-in'
}

export const QUOTA = { perChat: 2, perPrincipal: 3 }
export const DEADLINE_MS = 100
export const LEASE_MS = 40

/** What happened, recorded outside the ledger. */
export interface History {
  /** The stored transitions in order, with the wall clock at that moment, its latest time so far, the lease clock, and the worker. */
  readonly commits: {
    readonly at: number
    readonly latest: number
    readonly leaseAt: number
    readonly by: string
    readonly approval: Approval
  }[]
  /** The heartbeats of workers by the lease clock, with the number of commits before them. */
  readonly signs: { readonly worker: string; readonly leaseAt: number; readonly commits: number }[]
  readonly pendings: { readonly ofChat: number; readonly ofPrincipal: number }[]
  readonly requests: { readonly call: number; readonly result: Approval | Refusal }[]
  readonly decisions: {
    readonly call: number
    readonly who: Person
    readonly approved: boolean
    readonly edited: boolean
    readonly answeredAt: number
    readonly result: Approval | Refusal
  }[]
  readonly withdrawals: {
    readonly call: number
    readonly who: Person
    readonly result: Approval | Refusal
  }[]
  /** The started tools: the call, its arguments and its approval. */
  readonly starts: { readonly call: number; readonly args: unknown; readonly approvalId: string }[]
}

export function shownArgs(call: number): Record<string, unknown> {
  return { amount: 10 + call }
}

/** The answer of a person to a question. */
export function answerOf(call: number, who: Person): Record<string, unknown> {
  return { answer: call, from: who }
}

export function editedArgs(call: number): Record<string, unknown> {
  return { amount: 1, instead: 10 + call }
}
