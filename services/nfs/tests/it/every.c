/* Calls every procedure of NFS version 3 with libnfs, and prints what came of each. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

struct handle { unsigned length; char octets[64]; };
static struct rpc_context *rpc;
static int done, answered;
static struct handle got;
static char note[512];

static nfs_fh3 fh(struct handle *of) {
  nfs_fh3 handle;
  handle.data.data_len = of->length;
  handle.data.data_val = of->octets;
  return handle;
}

static void take(nfs_fh3 *from) {
  got.length = from->data.data_len;
  memcpy(got.octets, from->data.data_val, got.length);
}

static void wait_for(const char *name) {
  while (!done) {
    struct pollfd one = { rpc_get_fd(rpc), rpc_which_events(rpc), 0 };
    if (poll(&one, 1, 10000) <= 0 || rpc_service(rpc, one.revents) < 0) {
      printf("%s: no answer: %s\n", name, rpc_get_error(rpc));
      exit(1);
    }
  }
  printf("%s %d%s\n", name, answered, note);
}

static void plain(struct rpc_context *r, int status, void *data, void *private) {
  (void)r; (void)private;
  done = 1;
  answered = status == RPC_STATUS_SUCCESS && data ? *(int *)data : status;
}
static void empty(struct rpc_context *r, int status, void *data, void *private) {
  (void)r; (void)private; (void)data;
  done = 1;
  answered = status;
}
static void mounted(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  if (answered == 0) {
    mountres3_ok *ok = &((mountres3 *)data)->mountres3_u.mountinfo;
    got.length = ok->fhandle.fhandle3_len;
    memcpy(got.octets, ok->fhandle.fhandle3_val, got.length);
  }
}
static void found(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  if (answered == 0) take(&((LOOKUP3res *)data)->LOOKUP3res_u.resok.object);
}
static void created(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  /* CREATE, MKDIR, SYMLINK and MKNOD have the same results. */
  if (answered == 0) take(&((CREATE3res *)data)->CREATE3res_u.resok.obj.post_op_fh3_u.handle);
}
static void attributes(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  fattr3 *of = &((GETATTR3res *)data)->GETATTR3res_u.resok.obj_attributes;
  if (answered == 0) sprintf(note, " type=%d mode=%o size=%ju", of->type, of->mode, (uintmax_t)of->size);
}
static void allowed(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  sprintf(note, " access=%x", ((ACCESS3res *)data)->ACCESS3res_u.resok.access);
}
static void was_read(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  READ3resok *ok = &((READ3res *)data)->READ3res_u.resok;
  if (answered == 0) sprintf(note, " eof=%u %.*s", ok->eof, (int)ok->count, ok->data.data_val);
}
static void was_written(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  WRITE3resok *ok = &((WRITE3res *)data)->WRITE3res_u.resok;
  if (answered == 0)
    sprintf(note, " count=%u committed=%d before=%ju after=%ju", ok->count, ok->committed,
            (uintmax_t)ok->file_wcc.before.pre_op_attr_u.attributes.size,
            (uintmax_t)ok->file_wcc.after.post_op_attr_u.attributes.size);
}
static void linked(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  sprintf(note, " %s", ((READLINK3res *)data)->READLINK3res_u.resok.data);
}
static void listed(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  int count = 0;
  if (answered == 0)
    for (entry3 *e = ((READDIR3res *)data)->READDIR3res_u.resok.reply.entries; e; e = e->nextentry) count++;
  sprintf(note, " entries=%d", count);
}
static void listed_plus(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  int count = 0, handles = 0;
  if (answered == 0)
    for (entryplus3 *e = ((READDIRPLUS3res *)data)->READDIRPLUS3res_u.resok.reply.entries; e; e = e->nextentry) {
      count++;
      handles += e->name_handle.handle_follows;
    }
  sprintf(note, " entries=%d handles=%d", count, handles);
}
static void informed(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  FSINFO3resok *ok = &((FSINFO3res *)data)->FSINFO3res_u.resok;
  sprintf(note, " rtmax=%u wtmax=%u", ok->rtmax, ok->wtmax);
}
static void limited(struct rpc_context *r, int status, void *data, void *private) {
  plain(r, status, data, private);
  sprintf(note, " name_max=%u", ((PATHCONF3res *)data)->PATHCONF3res_u.resok.name_max);
}

#define RUN(name, call) do { done = 0; note[0] = 0; if (call) { printf("%s: not sent\n", name); exit(1); } wait_for(name); } while (0)

int main(int count, char **words) {
  if (count != 3) return 2;
  rpc = rpc_init_context();
  RUN("connect", rpc_connect_port_async(rpc, words[1], atoi(words[2]), MOUNT_PROGRAM, MOUNT_V3, empty, NULL));
  RUN("mnt-missing", rpc_mount3_mnt_async(rpc, mounted, "/missing", NULL));
  RUN("mnt", rpc_mount3_mnt_async(rpc, mounted, "/files", NULL));
  struct handle root = got;
  rpc_disconnect(rpc, "to NFS");
  rpc_destroy_context(rpc);
  rpc = rpc_init_context();
  RUN("connect", rpc_connect_port_async(rpc, words[1], atoi(words[2]), NFS_PROGRAM, NFS_V3, empty, NULL));

  RUN("null", rpc_nfs3_null_async(rpc, empty, NULL));
  GETATTR3args getattr = { fh(&root) };
  RUN("getattr", rpc_nfs3_getattr_async(rpc, attributes, &getattr, NULL));
  FSINFO3args fsinfo = { fh(&root) };
  RUN("fsinfo", rpc_nfs3_fsinfo_async(rpc, informed, &fsinfo, NULL));
  FSSTAT3args fsstat = { fh(&root) };
  RUN("fsstat", rpc_nfs3_fsstat_async(rpc, plain, &fsstat, NULL));
  PATHCONF3args pathconf = { fh(&root) };
  RUN("pathconf", rpc_nfs3_pathconf_async(rpc, limited, &pathconf, NULL));

  MKDIR3args mkdir = { { fh(&root), "directory" }, { 0 } };
  mkdir.attributes.mode.set_it = 1;
  mkdir.attributes.mode.set_mode3_u.mode = 0750;
  RUN("mkdir", rpc_nfs3_mkdir_async(rpc, created, &mkdir, NULL));
  struct handle directory = got;
  CREATE3args create = { { fh(&directory), "file" }, { GUARDED, { { { 0 } } } } };
  RUN("create", rpc_nfs3_create_async(rpc, created, &create, NULL));
  struct handle file = got;
  RUN("create-again", rpc_nfs3_create_async(rpc, plain, &create, NULL));
  CREATE3args exclusive = { { fh(&directory), "exclusive" }, { EXCLUSIVE, { { { 0 } } } } };
  memcpy(exclusive.how.createhow3_u.verf, "verifier", 8);
  RUN("create-exclusive", rpc_nfs3_create_async(rpc, created, &exclusive, NULL));
  RUN("create-exclusive-again", rpc_nfs3_create_async(rpc, created, &exclusive, NULL));
  WRITE3args write = { fh(&file), 0, 12, UNSTABLE, { 12, "twelve bytes" } };
  RUN("write", rpc_nfs3_write_async(rpc, was_written, &write, NULL));
  write.offset = 12;
  write.stable = FILE_SYNC;
  RUN("write-sync", rpc_nfs3_write_async(rpc, was_written, &write, NULL));
  COMMIT3args commit = { fh(&file), 0, 0 };
  RUN("commit", rpc_nfs3_commit_async(rpc, plain, &commit, NULL));
  READ3args read = { fh(&file), 7, 100 };
  RUN("read", rpc_nfs3_read_async(rpc, was_read, &read, NULL));
  SETATTR3args setattr = { fh(&file), { { 0 } }, { 0 } };
  setattr.new_attributes.size.set_it = 1;
  setattr.new_attributes.size.set_size3_u.size = 6;
  setattr.new_attributes.mode.set_it = 1;
  setattr.new_attributes.mode.set_mode3_u.mode = 0640;
  setattr.new_attributes.mtime.set_it = SET_TO_SERVER_TIME;
  RUN("setattr", rpc_nfs3_setattr_async(rpc, plain, &setattr, NULL));
  setattr.guard.check = 1;
  RUN("setattr-guard", rpc_nfs3_setattr_async(rpc, plain, &setattr, NULL));
  getattr.object = fh(&file);
  RUN("getattr-file", rpc_nfs3_getattr_async(rpc, attributes, &getattr, NULL));
  ACCESS3args access = { fh(&file), 0x3f };
  RUN("access", rpc_nfs3_access_async(rpc, allowed, &access, NULL));
  LOOKUP3args lookup = { { fh(&directory), "file" } };
  RUN("lookup", rpc_nfs3_lookup_async(rpc, found, &lookup, NULL));
  printf("same %d\n", got.length == file.length && !memcmp(got.octets, file.octets, file.length));
  lookup.what.name = "missing";
  RUN("lookup-missing", rpc_nfs3_lookup_async(rpc, plain, &lookup, NULL));
  SYMLINK3args symlink = { { fh(&directory), "link" }, { { { 0 } }, "file" } };
  RUN("symlink", rpc_nfs3_symlink_async(rpc, created, &symlink, NULL));
  READLINK3args readlink = { fh(&got) };
  RUN("readlink", rpc_nfs3_readlink_async(rpc, linked, &readlink, NULL));
  MKNOD3args mknod = { { fh(&directory), "pipe" }, { NF3FIFO, { { { { 0 } } } } } };
  RUN("mknod", rpc_nfs3_mknod_async(rpc, created, &mknod, NULL));
  LINK3args link = { fh(&file), { fh(&root), "second" } };
  RUN("link", rpc_nfs3_link_async(rpc, plain, &link, NULL));
  RENAME3args rename = { { fh(&root), "second" }, { fh(&directory), "third" } };
  RUN("rename", rpc_nfs3_rename_async(rpc, plain, &rename, NULL));
  READDIR3args readdir = { fh(&directory), 0, { 0 }, 4096 };
  RUN("readdir", rpc_nfs3_readdir_async(rpc, listed, &readdir, NULL));
  READDIRPLUS3args readdirplus = { fh(&directory), 0, { 0 }, 4096, 8192 };
  RUN("readdirplus", rpc_nfs3_readdirplus_async(rpc, listed_plus, &readdirplus, NULL));
  RMDIR3args rmdir = { { fh(&root), "directory" } };
  RUN("rmdir-full", rpc_nfs3_rmdir_async(rpc, plain, &rmdir, NULL));
  char *names[] = { "file", "exclusive", "link", "pipe", "third" };
  for (int n = 0; n < 5; n++) {
    REMOVE3args remove = { { fh(&directory), names[n] } };
    RUN("remove", rpc_nfs3_remove_async(rpc, plain, &remove, NULL));
  }
  RUN("rmdir", rpc_nfs3_rmdir_async(rpc, plain, &rmdir, NULL));
  getattr.object = fh(&file);
  RUN("getattr-stale", rpc_nfs3_getattr_async(rpc, plain, &getattr, NULL));
  file.octets[8] ^= 1;
  getattr.object = fh(&file);
  RUN("getattr-forged", rpc_nfs3_getattr_async(rpc, plain, &getattr, NULL));
  return 0;
}
