"""LLVM IR of the thread pool, second part: claiming chunks, sleeping, and what Python calls.

The protocol and the names after a dollar sign are explained in `pool_ir`.
"""

CLAIMING = """
; What every thread does while a phase is published, and between phases: claim, run, finish; conduct
; when it was the last; spin and sleep when there is nothing. The caller returns FINISHED, MORE,
; WAKE or REST, a worker STOP or PARK.
define internal i32 @participate(ptr %state, i32 %thread, i1 %is_caller) {
entry:
  %ticket.at = getelementptr i64, ptr %state, i64 $TICKET
  %remaining.at = getelementptr i64, ptr %state, i64 $REMAINING
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %chunks.at = getelementptr i64, ptr %state, i64 $PHASE_CHUNKS
  %held.at = getelementptr i64, ptr %state, i64 $HELD
  %abort.at = getelementptr i64, ptr %state, i64 $ABORT
  %quit.at = getelementptr i64, ptr %state, i64 $QUIT
  %gated.at = getelementptr i64, ptr %state, i64 $GATED
  %threads.at = getelementptr i64, ptr %state, i64 $THREADS
  %threads = load i64, ptr %threads.at
  %threads.32 = trunc i64 %threads to i32
  %spin.at = getelementptr i64, ptr %state, i64 $SPIN
  %spin = load i64, ptr %spin.at
  br label %look

look:
  %idle = phi i64 [ 0, %entry ], [ 0, %claim ], [ 0, %worker.conducted ], [ 0, %finished.one ],
                  [ 0, %clock ], [ 0, %clock.held ], [ %idle.next, %spin.once ], [ 0, %slept ]
  %ticket = load atomic i64, ptr %ticket.at acquire, align 8
  %claimed = trunc i64 %ticket to i32
  %open = xor i32 %claimed, -1
  %any = icmp ne i32 %open, 0
  br i1 %any, label %chunk, label %nothing

chunk:
  %chunks.hint = load atomic i64, ptr %chunks.at monotonic, align 8
  br i1 %is_caller, label %gates, label %claim
gates:                                       ; is somebody asleep whom only Python can wake?
  %sleepers = load atomic i64, ptr %sleepers.at monotonic, align 8
  %gated = load atomic i64, ptr %gated.at monotonic, align 8
  %waiting = and i64 %sleepers, %gated
  %bits = shl i64 1, %chunks.hint
  %useful = sub i64 %bits, 2
  %called = and i64 %waiting, %useful
  %none = icmp eq i64 %called, 0
  br i1 %none, label %claim, label %leave.wake
leave.wake:
  ret i32 $WAKE

claim:
  %chunks.32 = trunc i64 %chunks.hint to i32
  %share = mul i32 %thread, %chunks.32
  %own = udiv i32 %share, %threads.32
  %turned = call i32 @llvm.fshr.i32(i32 %open, i32 %open, i32 %own)
  %distance = call i32 @llvm.cttz.i32(i32 %turned, i1 true)
  %number.raw = add i32 %own, %distance
  %number.32 = and i32 %number.raw, 31
  %number = zext i32 %number.32 to i64
  %bit = shl i64 1, %number
  %ticket.new = or i64 %ticket, %bit
  %exchange = cmpxchg ptr %ticket.at, i64 %ticket, i64 %ticket.new acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %exchange, 1
  br i1 %mine, label %owner, label %look

owner:
  %held = load atomic i64, ptr %held.at monotonic, align 8
  %free = icmp eq i64 %held, 0
  %abort = load atomic i64, ptr %abort.at monotonic, align 8
  %aborted = icmp ne i64 %abort, 0
  %dropped = and i1 %free, %aborted
  br i1 %dropped, label %finish, label %run
run:
  %record.at = getelementptr i64, ptr %state, i64 $PHASE_RECORD
  %record = load ptr, ptr %record.at
  %tasks.at = getelementptr i64, ptr %state, i64 $PHASE_TASKS
  %tasks = load i64, ptr %tasks.at
  %chunks = load atomic i64, ptr %chunks.at monotonic, align 8
  %slots.at = getelementptr i64, ptr %state, i64 $SLOTS
  %slots = load ptr, ptr %slots.at
  %number.next = add i64 %number, 1
  %low.part = mul i64 %number, %tasks
  %high.part = mul i64 %number.next, %tasks
  %low = udiv i64 %low.part, %chunks
  %high = udiv i64 %high.part, %chunks
  call void @run_tasks(ptr %record, ptr %slots, i64 %low, i64 %high)
  br label %finish
finish:
  %left = atomicrmw sub ptr %remaining.at, i64 1 acq_rel, align 8
  %last = icmp eq i64 %left, 1
  br i1 %last, label %conductor, label %finished.one
conductor:
  %code = call i32 @conduct(ptr %state, i1 %is_caller)
  br i1 %is_caller, label %caller.conducted, label %worker.conducted
worker.conducted:
  br label %look
caller.conducted:
  %paused.at = getelementptr i64, ptr %state, i64 $PAUSED
  %paused = load i64, ptr %paused.at
  %is_paused = icmp ne i64 %paused, 0
  %is_over = icmp eq i32 %code, $FINISHED
  %leaves = or i1 %is_paused, %is_over
  br i1 %leaves, label %leave.conducted, label %clock
leave.conducted:
  ret i32 %code
finished.one:
  br i1 %is_caller, label %clock, label %look
clock:
  %deadline.at = getelementptr i64, ptr %state, i64 $DEADLINE
  %deadline = load i64, ptr %deadline.at
  %now = call i64 @treadle_pool_ticks()
  %late = icmp uge i64 %now, %deadline
  br i1 %late, label %clock.held, label %look
clock.held:
  %held.now = load atomic i64, ptr %held.at monotonic, align 8
  %may_leave = icmp eq i64 %held.now, 0
  br i1 %may_leave, label %leave.more, label %look
leave.more:
  ret i32 $MORE

nothing:
  br i1 %is_caller, label %nothing.caller, label %nothing.worker
nothing.caller:
  %is_finished = icmp slt i64 %ticket, 0
  br i1 %is_finished, label %leave.finished, label %idling
leave.finished:
  ret i32 $FINISHED
nothing.worker:
  %quit = load atomic i64, ptr %quit.at acquire, align 8
  %quits = icmp ne i64 %quit, 0
  br i1 %quits, label %leave.stop, label %idling
leave.stop:
  ret i32 $STOP
idling:
  %idle.next = add i64 %idle, 1
  %patient = icmp slt i64 %idle.next, %spin
  br i1 %patient, label %spin.once, label %sleep
spin.once:
  $PAUSE
  br label %look

sleep:
  %code.sleep = call i32 @sleep(ptr %state, i32 %thread, i1 %is_caller, i64 %ticket)
  %stays = icmp eq i32 %code.sleep, -1
  br i1 %stays, label %slept, label %leave.sleep
slept:
  br label %look
leave.sleep:
  ret i32 %code.sleep
}
"""

SLEEPING = """
; Wake these sleepers by futex, but not those at a gate: the caller sees them at its next claim.
define internal void @wake(ptr %state, i64 %threads) {
entry:
  %gated.at = getelementptr i64, ptr %state, i64 $GATED
  %gated = load atomic i64, ptr %gated.at monotonic, align 8
  %not_gated = xor i64 %gated, -1
  %woken = and i64 %threads, %not_gated
  %some = icmp ne i64 %woken, 0
  br i1 %some, label %call, label %done
call:
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %others = xor i64 %woken, -1
  %before = atomicrmw and ptr %sleepers.at, i64 %others seq_cst, align 8
  %number.at = getelementptr i64, ptr %state, i64 $FUTEX
  %number = load i64, ptr %number.at
  %syscall.at = getelementptr i64, ptr %state, i64 $SYSCALL
  %syscall = load ptr, ptr %syscall.at
  %serial.at = getelementptr i8, ptr %state, i64 4
  ; FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG
  %result = call i64 (i64, ...) %syscall(i64 %number, ptr %serial.at, i64 138, i64 2147483647,
                                         ptr null, ptr null, i64 %woken)
  br label %done
done:
  ret void
}

; Sleep unless the ticket is no longer `seen`. -1: look again; else the code to leave with.
define internal i32 @sleep(ptr %state, i32 %thread, i1 %is_caller, i64 %seen) {
entry:
  %ticket.at = getelementptr i64, ptr %state, i64 $TICKET
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %number.at = getelementptr i64, ptr %state, i64 $FUTEX
  %number = load i64, ptr %number.at
  %syscall.at = getelementptr i64, ptr %state, i64 $SYSCALL
  %syscall = load ptr, ptr %syscall.at
  %serial.at = getelementptr i8, ptr %state, i64 4
  %serial = load i32, ptr %serial.at
  %seen.high = lshr i64 %seen, 32
  %portable = icmp eq i64 %number, 0
  %rests = and i1 %portable, %is_caller
  br i1 %rests, label %leave.rest, label %announce
leave.rest:                                  ; Python sleeps a little: no one could wake the caller
  ret i32 $REST
announce:
  %thread.64 = zext i32 %thread to i64
  %bit = shl i64 1, %thread.64
  %others = xor i64 %bit, -1
  %before = atomicrmw or ptr %sleepers.at, i64 %bit seq_cst, align 8
  %ticket = load atomic i64, ptr %ticket.at seq_cst, align 8
  %same = icmp eq i64 %ticket, %seen
  br i1 %same, label %asleep, label %withdraw
withdraw:
  %after = atomicrmw and ptr %sleepers.at, i64 %others seq_cst, align 8
  br i1 %portable, label %withdraw.gate, label %again
withdraw.gate:                               ; a waker was quicker: the gate will open, go through
  %still = and i64 %after, %bit
  %promised = icmp eq i64 %still, 0
  br i1 %promised, label %leave.park, label %again
again:
  ret i32 -1
leave.park:
  ret i32 $PARK
asleep:
  br i1 %portable, label %leave.park, label %futex
futex:
  br i1 %is_caller, label %futex.caller, label %futex.worker
futex.worker:                                ; FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, no time limit
  %worker.result = call i64 (i64, ...) %syscall(i64 %number, ptr %serial.at, i64 137,
      i64 %seen.high, ptr null, ptr null, i64 %bit)
  br label %withdraw
futex.caller:                                ; FUTEX_WAIT | FUTEX_PRIVATE_FLAG; a signal ends it too
  %rest.at = getelementptr i64, ptr %state, i64 $REST_SECONDS
  %caller.result = call i64 (i64, ...) %syscall(i64 %number, ptr %serial.at, i64 128,
      i64 %seen.high, ptr %rest.at, ptr null, i64 0)
  %awake = atomicrmw and ptr %sleepers.at, i64 %others seq_cst, align 8
  %ticket.now = load atomic i64, ptr %ticket.at acquire, align 8
  %unchanged = icmp eq i64 %ticket.now, %seen
  br i1 %unchanged, label %leave.more, label %again
leave.more:
  ret i32 $MORE
}
"""

ENTRIES = """
; A slice of the caller. The program is over when it returns FINISHED.
define internal i32 @slice(ptr %state, i1 %conducts) {
entry:
  %slice.at = getelementptr i64, ptr %state, i64 $SLICE
  %slice = load i64, ptr %slice.at
  %now = call i64 @treadle_pool_ticks()
  %deadline = add i64 %now, %slice
  %deadline.at = getelementptr i64, ptr %state, i64 $DEADLINE
  store i64 %deadline, ptr %deadline.at
  br i1 %conducts, label %conduct, label %claim
conduct:
  %paused.at = getelementptr i64, ptr %state, i64 $PAUSED
  store i64 0, ptr %paused.at
  %conducted = call i32 @conduct(ptr %state, i1 true)
  %paused = load i64, ptr %paused.at
  %is_paused = icmp ne i64 %paused, 0
  %is_over = icmp eq i32 %conducted, $FINISHED
  %leaves = or i1 %is_paused, %is_over
  br i1 %leaves, label %leave, label %claim
claim:
  %participated = call i32 @participate(ptr %state, i32 0, i1 true)
  br label %leave
leave:
  %code = phi i32 [ %conducted, %conduct ], [ %participated, %claim ]
  %goes_on = icmp ne i32 %code, $FINISHED
  %active = zext i1 %goes_on to i64
  %active.at = getelementptr i64, ptr %state, i64 $ACTIVE
  store i64 %active, ptr %active.at
  ret i32 %code
}

define i32 @treadle_pool_begin(ptr %state, ptr %program) {
entry:
  %active.at = getelementptr i64, ptr %state, i64 $ACTIVE
  %active = load i64, ptr %active.at
  %busy = icmp ne i64 %active, 0
  br i1 %busy, label %refuse, label %start
refuse:
  ret i32 $BUSY
start:
  %program.at = getelementptr i64, ptr %state, i64 $PROGRAM
  store ptr %program, ptr %program.at
  %from.records.at = getelementptr i64, ptr %program, i64 $PROGRAM_RECORDS
  %records = load i64, ptr %from.records.at
  %records.at = getelementptr i64, ptr %state, i64 $RECORDS
  store i64 %records, ptr %records.at
  %from.count.at = getelementptr i64, ptr %program, i64 $PROGRAM_COUNT
  %count = load i64, ptr %from.count.at
  %count.at = getelementptr i64, ptr %state, i64 $COUNT
  store i64 %count, ptr %count.at
  %from.slots.at = getelementptr i64, ptr %program, i64 $PROGRAM_SLOTS
  %slots = load i64, ptr %from.slots.at
  %slots.at = getelementptr i64, ptr %state, i64 $SLOTS
  store i64 %slots, ptr %slots.at
  %completed.at = getelementptr i64, ptr %program, i64 $PROGRAM_COMPLETED
  store i64 0, ptr %completed.at
  %from.start.at = getelementptr i64, ptr %program, i64 $PROGRAM_START
  %first = load i64, ptr %from.start.at
  %cursor.at = getelementptr i64, ptr %state, i64 $CURSOR
  store i64 %first, ptr %cursor.at
  %held.at = getelementptr i64, ptr %state, i64 $HELD
  store atomic i64 0, ptr %held.at monotonic, align 8
  %abort.at = getelementptr i64, ptr %state, i64 $ABORT
  store atomic i64 0, ptr %abort.at monotonic, align 8
  store i64 1, ptr %active.at
  %code = call i32 @slice(ptr %state, i1 true)
  ret i32 %code
}

define i32 @treadle_pool_resume(ptr %state) {
entry:
  %active.at = getelementptr i64, ptr %state, i64 $ACTIVE
  %active = load i64, ptr %active.at
  %lost = icmp eq i64 %active, 0
  br i1 %lost, label %refuse, label %enter
refuse:
  ret i32 $LOST
enter:
  %paused.at = getelementptr i64, ptr %state, i64 $PAUSED
  %paused = load i64, ptr %paused.at
  %conducts = icmp ne i64 %paused, 0
  %code = call i32 @slice(ptr %state, i1 %conducts)
  ret i32 %code
}

define i32 @treadle_pool_abort(ptr %state) {
  %active.at = getelementptr i64, ptr %state, i64 $ACTIVE
  %active = load i64, ptr %active.at
  %abort.at = getelementptr i64, ptr %state, i64 $ABORT
  store atomic i64 %active, ptr %abort.at seq_cst, align 8
  %code = trunc i64 %active to i32
  ret i32 %code
}

define i32 @treadle_pool_worker(ptr %state, i32 %thread) {
  %code = call i32 @participate(ptr %state, i32 %thread, i1 false)
  ret i32 %code
}

define i64 @treadle_pool_take(ptr %state) {
  %chunks.at = getelementptr i64, ptr %state, i64 $PHASE_CHUNKS
  %chunks = load atomic i64, ptr %chunks.at monotonic, align 8
  %bits = shl i64 1, %chunks
  %useful = sub i64 %bits, 2
  %gated.at = getelementptr i64, ptr %state, i64 $GATED
  %gated = load atomic i64, ptr %gated.at monotonic, align 8
  %candidates = and i64 %useful, %gated
  %others = xor i64 %candidates, -1
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %before = atomicrmw and ptr %sleepers.at, i64 %others seq_cst, align 8
  %taken = and i64 %before, %candidates
  ; where threads sleep by futex, a gate is only for being started
  %number.at = getelementptr i64, ptr %state, i64 $FUTEX
  %number = load i64, ptr %number.at
  %portable = icmp eq i64 %number, 0
  %untaken = xor i64 %taken, -1
  %gated.left = and i64 %gated, %untaken
  %gated.new = select i1 %portable, i64 %gated, i64 %gated.left
  store atomic i64 %gated.new, ptr %gated.at monotonic, align 8
  %owed.at = getelementptr i64, ptr %state, i64 $OWED
  %owed = load i64, ptr %owed.at
  %owed.new = or i64 %owed, %taken
  store i64 %owed.new, ptr %owed.at
  ret i64 %owed.new
}

define i64 @treadle_pool_dismiss(ptr %state) {
  %quit.at = getelementptr i64, ptr %state, i64 $QUIT
  store atomic i64 1, ptr %quit.at seq_cst, align 8
  ; a new serial number with no chunk: whoever is about to sleep on the old one does not
  %ticket.at = getelementptr i64, ptr %state, i64 $TICKET
  %ticket = atomicrmw add ptr %ticket.at, i64 4294967296 seq_cst, align 8
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  call void @wake(ptr %state, i64 %sleepers)
  %gated.at = getelementptr i64, ptr %state, i64 $GATED
  %gated = load atomic i64, ptr %gated.at monotonic, align 8
  %others = xor i64 %gated, -1
  %before = atomicrmw and ptr %sleepers.at, i64 %others seq_cst, align 8
  %taken = and i64 %before, %gated
  %owed.at = getelementptr i64, ptr %state, i64 $OWED
  %owed = load i64, ptr %owed.at
  %all = or i64 %owed, %taken
  ret i64 %all
}
"""
