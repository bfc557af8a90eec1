/** A feature, its files, and the identifiers by which a reader recognises it in other files. */
export interface Feature {
  readonly name: string
  /** How the paths of its files begin, relative to the source folder. */
  readonly own: readonly string[]
  /** Found in code without comments, also inside longer identifiers and in strings. */
  readonly identifiers: RegExp
}

/** The agents that an agent uses: as tools, as steps, as nodes of a workflow, and on other servers. */
const AGENTS = ['agent/tree/', 'calls/agents/']

/**
 * The features that other files should not know. `ceilings.json` lists the files that still do.
 *
 * A pattern names what belongs to the feature alone. Words that the core also uses are left out: a `worker` owns locks and leases also
 * without a second server, and `reply` is what a model says.
 */
export const FEATURES: readonly Feature[] = [
  {
    name: 'nested agents',
    own: AGENTS,
    identifiers: /(?<!un)nest(?:ed|ing)?(?![a-z]| deeper)|Nest(?:ed|ing)/,
  },
  {
    name: 'several servers',
    own: [
      'locks/',
      'relay/',
      'modules/live/live-leases.ts',
      'modules/live/live-owners.ts',
      'modules/live/live-requests.ts',
      'server/chats/other-servers.ts',
      'server/chats/turns/relayed-turns.ts',
      'store/postgres/hint-connection.ts',
      'store/postgres/postgres-relay.ts',
      'store/sqlite/tables/signals.ts',
      'store/tables/signals.ts',
    ],
    identifiers:
      /[rR]elay(?!s)|[eE]lsewhere(?!\.)|(?<![-a-zA-Z])[sS]ignals(?![a-z])|RequestHandlers|AskServer|OtherServers|servers\.ask|LiveOwner/,
  },
  {
    name: 'sign-in',
    own: ['modules/sign-in/', 'protocol/sign-in-terms.ts', ...ofTables('credentials')],
    identifiers:
      /[sS]ign(?:ing)?[-_]?[iI]ns?(?![a-z])|[oO][aA]uth(?!or)|(?<=[a-z])Credential(?!s|Check)|credential(?:Service|Store|Key)|CredentialS|\.credentials\b|\bcredentials\??:/,
  },
  {
    name: 'MCP questions',
    own: ['modules/mcp/'],
    identifiers: /[eE]licit|ELICIT/,
  },
  {
    name: 'browser tools',
    own: ['modules/browser/', 'protocol/call-offers.ts', ...ofTables('browser-calls')],
    identifiers:
      /[bB]rowser[-_]?(?:[tT]ool|[cC]all|Response)|BROWSER|isBrowser|(?:case|for:|to:) 'browser'/,
  },
  {
    name: 'live',
    own: ['modules/live/', ...ofTables('live-sessions')],
    identifiers: /(?<![a-zA-Z]|'\/)live(?![a-z]|Worker)|Live(?![a-z])|(?<!KEEP_A)LIVE(?!_PATH)/,
  },
  {
    name: 'replies',
    own: ['approvals/reply-terms.ts', 'modules/replies/'],
    identifiers:
      /accepts?Replies|[rR]eply-?(?:Terms|Policy|terms)|openReplies|mayReply|[uU]nderstandReply|[dD]ecideByReply|[cC]heckReply|Reply(?:Check|Decision|Fault)|reply-(?:decisions|outdated)|decideSpoken/,
  },
  {
    name: 'dialects',
    own: ['server/dialects/'],
    identifiers: /(?<!_)[dD]ialect|DIALECT|[bB]idi|BIDI/,
  },
  {
    name: 'AG-UI',
    // `conform` tests servers of AG-UI, of others too. It uses nothing of the dialect.
    own: ['server/dialects/ag-ui/', 'conform/'],
    identifiers: /[aA]g-?[uU]i(?![a-z])|AG-?UI|[cC]opilot/,
  },
  {
    name: 'workflows',
    own: AGENTS,
    identifiers: /[wW]orkflow|NodeRun|node-runs|run-nodes|ParallelWorker|JoinNode|ToolNode/,
  },
  {
    name: 'links',
    own: ['approvals/link.ts', 'modules/links/'],
    identifiers:
      /[aA]pprovalLink|approval-link|UsedLink|[lL]inkedApproval|[cC]reateLink|[oO]penLink|CreatedLink|OpenedLink|LinkDecided|LinkVoter|linkBy|linkId|'link-|-link'|BAD_LINK|'links'/,
  },
  {
    name: 'notices',
    own: ['modules/notify/', 'protocol/notices.ts', ...ofTables('notices')],
    identifiers:
      /Notify(?:Bridge)?Options|openNotify|[nN]otices(?![a-z])|NOTICE_|NoticeStore|modules\/notify/,
  },
  {
    name: 'personal records',
    own: [
      'approvals/required-record.ts',
      'modules/notify/',
      'modules/delegation/',
      ...ofTables('personal-records'),
    ],
    identifiers: /PERSONAL_RECORD|[pP]ersonalRecords?(?![a-z])|RequiredRecord|require-record/,
  },
  {
    name: 'delegation',
    own: ['approvals/delegation-terms.ts', 'modules/delegation/', 'protocol/delegations.ts'],
    identifiers: /[dD]elegat(?!ion: true)/,
  },
  {
    name: 'grants',
    own: [
      'approvals/grant.ts',
      'approvals/grant-terms.ts',
      'modules/grants/',
      'protocol/grants.ts',
      ...ofTables('grants'),
    ],
    identifiers:
      /Grant(?:Offer|Write|Store|Policy|Terms|Fault|Note|sBridge)|(?:Used|Given)Grant|openGrants|GRANT_|'grant-|\bgrant(?=[,:?}.])|\bgrant }|modules\/grants/,
  },
  {
    name: 'sessions for developers',
    own: ['modules/developer/'],
    identifiers: /Developer(?:Bridge)?Options|openDeveloper|modules\/developer|session-file/,
  },
  {
    name: 'A2A',
    own: [...AGENTS, 'modules/remote/', 'protocol/remote-'],
    identifiers: /(?<![a-zA-Z#])remote(?!Address|[a-z])|Remote[A-Z]|[a-z]Remote|REMOTE|A2A|a2a/,
  },
]

/** Returns the files of a part of the stores that belongs to a feature. */
function ofTables(name: string): string[] {
  return ['store', 'store/sqlite', 'store/postgres'].map((folder) => `${folder}/tables/${name}.ts`)
}
